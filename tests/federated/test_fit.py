"""A fit between parties comes to what simulated nodes come to, and says what left whom."""

from __future__ import annotations

import numpy as np
import pytest

from atomcast import Lasso, LocalCluster, Shards, Solver, SparseLogisticRegression
from federation import NAMES, Parties, make_data


@pytest.mark.parametrize("step", ["corrective", "pairwise"])
def test_the_same_atoms_and_disclosures_as_simulated_nodes(tmp_path, step):
    parts, y = make_data()
    solver = Solver(step=step, tol=1e-6)
    sizes = [part.shape[1] for part in parts]
    shards = Shards.split(np.hstack(parts), 3, by=sizes, party_names=NAMES)
    expected = Lasso(5.0, cluster=LocalCluster(3), solver=solver).fit(shards, y)
    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open()
        model = Lasso(5.0, cluster=cluster, solver=solver).fit(cluster.shards("cohort"), y)
    found, right = model.result_, expected.result_
    assert found.ledger.disclosures == right.ledger.disclosures
    assert found.ledger.told == right.ledger.told
    assert (found.status, found.rounds) == (right.status, right.rounds)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-9)
    assert found.uncertified == ()


def test_logistic_regression_and_predictions_by_parts(tmp_path):
    from dataclasses import replace

    from atomcast.federated.consent import RefusedError
    from atomcast.federated.policy import DataSource

    parts, y = make_data()
    labels = np.where(y > 0.0, "ill", "well")
    new = [part[:7] + 1.0 for part in parts]
    expected = SparseLogisticRegression(3.0).fit(np.hstack(parts), labels)
    with Parties(tmp_path / "p", parts) as parties:
        for name, part in zip(NAMES, new, strict=True):
            np.save(tmp_path / f"new-{name}.npy", part)
            config = parties.configs[name]
            data = {**config.data, "new": DataSource(tmp_path / f"new-{name}.npy", new=True)}
            parties.configs[name] = replace(config, data=data)
        cluster = parties.open(terms={"predict": "new", "predictions": 1})
        model = SparseLogisticRegression(3.0, cluster=cluster)
        model.fit(cluster.shards("cohort"), labels)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-9)
        found = model.decision_function(cluster.shards("new"))
        np.testing.assert_allclose(found, expected.decision_function(np.hstack(new)), atol=1e-8)
        again = model.decision_function(cluster.shards("new"))  # the same: it costs nothing
        np.testing.assert_array_equal(again, found)
        # Weights that were never part of the fit would read the data column by column.
        unit = np.eye(20)[0]
        with pytest.raises(RefusedError, match="weights of a model that was fitted under it"):
            cluster.combined("new", 7, unit)
        with pytest.raises(RefusedError, match="names these data"):
            model.predict(cluster.shards("cohort"))
        left = [e for e in parties.log("north") if e["event"] == "prediction"]
    assert [entry["rows"] for entry in left] == [7, 7]


def test_nodes_prepare_raw_tables_and_keep_how_to_themselves(tmp_path):
    from dataclasses import replace

    import pandas as pd

    from atomcast import Preparation, Shards
    from atomcast.federated.policy import DataSource

    parts, y = make_data()
    tidy, sources, later = Preparation(impute="mean", scale="standard"), {}, {}
    for name, part in zip(NAMES, parts, strict=True):
        frame = pd.DataFrame(part).add_prefix(f"{name}_")
        frame[f"{name}_ward"] = np.where(part[:, 0] > 0, "a", "b")
        frame.iloc[::4, 1] = np.nan
        sources[name], later[name] = tmp_path / f"{name}.csv", tmp_path / f"later-{name}.csv"
        frame.to_csv(sources[name], index=False)
        (frame.head(6) + frame.head(6)).to_csv(later[name], index=False)  # the ward "aa" is new
    here = Shards.files(sources, prepare=tidy)
    expected = Lasso(5.0).fit(here, y)
    with Parties(tmp_path / "p", parts, min_count=0) as parties:
        for name in NAMES:
            data = {
                "cohort": DataSource(sources[name], prepare=dict(vars(tidy))),
                "later": DataSource(later[name], new=True, prepared_as="cohort"),
            }
            parties.configs[name] = replace(parties.configs[name], data=data)
        cluster = parties.open(terms={"predict": "later", "predictions": 1})
        model = Lasso(5.0, cluster=cluster).fit(cluster.shards("cohort"), y)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-9)
        assert not hasattr(model, "preparation_")
        found = model.predict(cluster.shards("later"))
    np.testing.assert_allclose(found, expected.predict(Shards.files(later)), atol=1e-8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('prepared_as = "gone"', "is prepared as 'gone', which must be the alias of other data"),
        ('prepare = { fill = "mean" }', "does not know 'fill': it may have impute, one_hot"),
        ('prepare = { impute = "zero" }', "impute must be one of 'mean'"),
    ],
)
def test_settings_of_a_preparation_that_make_no_sense(tmp_path, settings, message):
    from atomcast.federated.policy import read_config

    config = f'name = "n"\ncoordinator = "c"\naddress = "a:1"\n[data.x]\npath = "x"\n{settings}\n'
    (tmp_path / "node.toml").write_text(config)
    with pytest.raises(ValueError, match=message):
        read_config(tmp_path / "node.toml")


def test_a_path_sends_no_feature_twice(tmp_path):
    from atomcast import lasso_path

    parts, y = make_data()
    betas = [1.0, 3.0, 5.0]

    def restart(state):
        if state.round == 0:  # of every problem
            parties.stop("south")
            parties.start("south", cluster.listen())

    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open(terms={"radius": (1.0, 5.0), "runs": 3})
        solver = Solver(callbacks=[restart])
        found = lasso_path(cluster.shards("cohort"), y, betas=betas, cluster=cluster, solver=solver)
        sent = [e["id"] for e in parties.log("south") if e["event"] == "atom"]
    expected = lasso_path(np.hstack(parts), y, betas=betas, cluster=LocalCluster(1))
    np.testing.assert_allclose(found[1], expected[1], atol=1e-6)
    assert len(sent) == len(set(sent)) > 0


def test_models_that_nodes_do_not_know_are_refused_before_anything_is_asked(tmp_path):
    from atomcast import (
        KernelSVC,
        L1AdaBoost,
        LassoCV,
        MatchingPursuit,
        MultipleKernelClassifier,
        SparseModel,
        StructuredSVM,
    )
    from atomcast.domains import Simplex
    from atomcast.objectives import SquaredLoss

    parts, y = make_data()
    labels = np.digitize(y, [-1.0, 1.0])
    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open(approve=False)
        shards = cluster.shards("cohort")
        for model, target, text in (
            (
                SparseLogisticRegression(1.0, class_weight="balanced"),
                labels > 0,
                "no other problem",
            ),
            (MatchingPursuit(3), y, "know no other problem"),
            (Lasso(beta=1.0), np.column_stack([y, y]), "of one target"),
            (LassoCV([1.0]), np.column_stack([y, y]), "of one target"),
            (SparseModel(SquaredLoss(), Simplex()), y, "know no other problem"),
            (L1AdaBoost(), labels > 0, "know no other problem"),
            (MultipleKernelClassifier(), labels > 0, "know no other problem"),
            (StructuredSVM(), labels, "features, not examples"),
            (KernelSVC(), labels > 0, "features, not examples"),
        ):
            with pytest.raises(ValueError, match=text):
                model.set_params(cluster=cluster).fit(shards, target)
            assert not parties.approve()


def test_bad_settings_of_a_cluster_are_named():
    from atomcast import FederatedCluster

    for arguments, text in (
        (("nowhere", ["a", "b"], "."), "host:port"),
        (("localhost:1", ["a"], "."), "two or more"),
        (("localhost:1", ["a", "a"], "."), "occurs twice"),
    ):
        with pytest.raises(ValueError, match=text):
            FederatedCluster(*arguments)
    with pytest.raises(ValueError, match="runs must be a whole number"):
        FederatedCluster("localhost:1", ["a", "b"], ".", terms={"runs": 0})
    with pytest.raises(FileNotFoundError, match="node keys"):
        FederatedCluster("localhost:1", ["a", "b"], "/nowhere").listen()
