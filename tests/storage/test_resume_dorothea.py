"""Resuming on real data: Dorothea (1,150 x 100,000), with its many equal columns."""

import numpy as np
import pytest

from atomcast import Checkpoint, Lasso, Solver
from atomcast.data import load_dorothea
from realdata import use

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def dorothea():
    with pytest.MonkeyPatch.context() as patch:
        use("dorothea", patch)
        return load_dorothea()


def fit(data, nodes, **how):
    model = Lasso(16.0, fit_intercept=False, cluster=nodes, solver=Solver(**how))
    return model.fit(data.X, data.y)


@pytest.mark.parametrize("stop", [1, 5, 12])
@pytest.mark.parametrize("step", ["corrective", "pairwise"])
def test_resumed_on_other_nodes(dorothea, tmp_path, step, stop):
    path = tmp_path / "c.safetensors"
    how = {"step": step, "tol": 1e-4 if step == "corrective" else 0.2}
    whole = fit(dorothea, 100, **how)
    stopped = fit(
        dorothea, 100, callbacks=[Checkpoint(path), lambda state: state.round < stop], **how
    )
    assert stopped.result_.status == "stopped"
    resumed = fit(dorothea, 10, resume=path, **how)
    # Hundreds of atoms: the corrective step's weights are as exact as the tolerance asks for.
    exact = 1e-6 if step == "corrective" else 1e-9
    np.testing.assert_allclose(resumed.coef_, whole.coef_, rtol=0, atol=16 * exact)
    assert resumed.n_iter_ == whole.n_iter_
    assert resumed.result_.status == whole.result_.status == "optimal"
