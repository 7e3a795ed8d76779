"""`atomcast fit --checkpoint` and `--resume`."""

import numpy as np
import pytest

from atomcast import load_model

FIT = ("fit", "lasso", "X.npy", "--target", "y.npy", "--beta", 2000, "--tol", 1e-10)


def fitted(run, *options):
    outcome = run(*FIT, *options, "--out", "m.safetensors")
    assert outcome.exit_code == 0, outcome.stderr
    return load_model("m.safetensors")


@pytest.mark.parametrize("step", ["corrective", "away"])
def test_resume_gives_the_model_of_an_uninterrupted_fit(run, files, step):
    whole = fitted(run, "--step", step)
    assert whole.certificate_.rounds > 1
    stop = ("--step", step, "--max-rounds", 1, "--checkpoint", "c.safetensors")
    fitted(run, *stop, "--checkpoint-rounds", 1)
    resumed = fitted(run, "--step", step, "--nodes", 4, "--resume", "c.safetensors")
    np.testing.assert_allclose(resumed.coef_, whole.coef_, rtol=1e-9)
    assert resumed.certificate_.rounds == whole.certificate_.rounds
    assert resumed.certificate_.status == whole.certificate_.status == "optimal"


def test_cross_validation_is_resumed(run, files):
    how = ("fit", "lasso-cv", "X.npy", "--target", "y.npy", "--n-betas", 3, "--folds", 2)
    for options in (("--checkpoint", "c.safetensors"), ("--resume", "c.safetensors")):
        outcome = run(*how, *options, "--out", f"{options[0][2:]}.safetensors")
        assert outcome.exit_code == 0, outcome.stderr
    whole, resumed = load_model("checkpoint.safetensors"), load_model("resume.safetensors")
    np.testing.assert_allclose(resumed.coef_, whole.coef_, rtol=1e-9)
    assert resumed.beta_ == whole.beta_
    assert resumed.certificate_.rounds == whole.certificate_.rounds


def error(run, *options):
    outcome = run(*FIT, *options)
    assert outcome.exit_code == 2
    assert outcome.stderr.count("\n") == 1
    return outcome.stderr


def test_mistakes_are_one_line(run, files):
    assert "there is no file nowhere" in error(run, "--resume", "nowhere")
    assert "there is no folder" in error(run, "--checkpoint", "nowhere/c.safetensors")
    assert "needs --checkpoint FILE" in error(run, "--checkpoint-rounds", 3)
    assert "rounds must be" in error(run, "--checkpoint", "c", "--checkpoint-rounds", 0)
    fitted(run, "--checkpoint", "c.safetensors")
    assert "another problem" in error(run, "--resume", "c.safetensors", "--no-intercept")
    np.save("X.npy", np.load("X.npy") + 1.0)
    assert "other data" in error(run, "--resume", "c.safetensors")
    assert "no checkpoint, but a model" in error(run, "--resume", "m.safetensors")
