"""`atomcast inspect --card`: a model card that says what the file says, and nothing else."""

import numpy as np
import pandas as pd
import pytest

from atomcast import Lasso, MatchingPursuit, Preparation, Shards, SparseCoder, save_model


@pytest.fixture
def card(run, tmp_path):
    def of(model):
        save_model(model, tmp_path / "m.safetensors")
        outcome = run("inspect", "--card", tmp_path / "m.safetensors")
        assert outcome.exit_code == 0, outcome.stderr
        return outcome.stdout

    return of


def test_a_card_tells_the_fit_the_features_and_who_sent_them(card, diabetes):
    X, y = diabetes
    shards = Shards.split(X, 2, by="contiguous", party_names=["Oslo", "Rome"])
    text = card(Lasso(700.0).fit(shards, y))
    assert text.startswith("# Model card: Lasso\n")
    assert "| status | optimal |" in text
    assert "that is certified" in text
    assert "| beta | 700.0 |" in text
    assert "| bmi | " in text
    assert "of 10" in text
    lines = [line for line in text.splitlines() if line.startswith("| bmi | ")]
    assert lines[0].endswith(" | Oslo |")
    assert "## For you to fill in" in text
    assert "prepared" not in text


def test_a_card_lists_the_largest_weights_and_counts_the_others(card):
    X = np.random.default_rng(0).standard_normal((50, 40))
    text = card(Lasso(800.0).fit(X, X @ np.arange(1.0, 41.0)))
    assert "more, with smaller weights." in text
    assert "No atom left its node." in text


def test_a_card_tells_how_tables_were_prepared(card):
    table = pd.DataFrame({"age": [1.0, np.nan, 3.0, 4.0], "ward": ["a", "b", "a", None]})
    prepare = Preparation(impute="most-frequent", scale="standard")
    text = card(Lasso(9.0).fit(Shards.split(table, 2, prepare=prepare), [1.0, 2.0, 3.0, 5.0]))
    assert "| age | (x - 2.25) / 1.29904, missing: 1 |" in text
    assert "| ward | 0 or 1 for each of a, b, missing: a |" in text


def test_names_cannot_write_markdown_or_html(card):
    name = "<b>|[x](http://x) *`\n# top"
    X = pd.DataFrame({name: [0.0, 1.0, 2.0]})
    text = card(Lasso(5.0).fit(X, [0.0, 1.0, 2.0]))
    assert r"| \<b\>\|\[x\](http://x) \*\`\\n# top | " in text
    assert "\n# top" not in text


def test_models_without_a_certificate_have_a_card(card, diabetes):
    assert "certified" not in card(MatchingPursuit(n_nonzero=2).fit(*diabetes))
    assert card(SparseCoder(np.eye(3), n_nonzero=1).fit(np.eye(3))).startswith("# Model card")
