"""Models that can be fitted between parties beside the lasso, and cross-validation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, ShuffleSplit

from atomcast import (
    GroupLasso,
    GroupLogisticRegression,
    LassoCV,
    LocalCluster,
    Shards,
    Solver,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    SparseModel,
)
from atomcast.domains import SolidSimplex
from atomcast.federated.policy import DataSource, Policy
from atomcast.objectives import SquaredLoss
from federation import NAMES, Parties, ask, make_data, offline_node

GROUPS = [[0, 1, 2], [3, 7], [4, 5, 6], [8, 9, 10, 11, 12], [13, 14], [15, 16, 17, 18, 19]]
PREDICTED = {"predict": "new", "predictions": 1}


def simulated(parts, party_names=NAMES):
    """The same shards, to be held by simulated nodes."""
    sizes = [part.shape[1] for part in parts]
    return Shards.split(np.hstack(parts), 3, by=sizes, party_names=party_names)


def with_new_data(parties, folder, parts):
    """Every party has new data as well."""
    for name, part in zip(NAMES, parts, strict=True):
        np.save(folder / f"new-{name}.npy", part)
        config = parties.configs[name]
        data = {**config.data, "new": DataSource(folder / f"new-{name}.npy", new=True)}
        parties.configs[name] = replace(config, data=data)


def classes(y):
    return np.digitize(y, [-1.5, 1.5])


MODELS = {
    "groups": (GroupLasso(6.0, groups=GROUPS), lambda y: y),
    "sources": (GroupLasso(6.0, groups="sources"), lambda y: y),
    "group-logistic": (GroupLogisticRegression(3.0, groups=GROUPS), lambda y: y > 0),
    "multinomial": (SparseLogisticRegression(6.0), classes),
    "positive": (SparseModel(SquaredLoss(), SolidSimplex()), lambda y: y),
}


@pytest.mark.parametrize("kind", MODELS)
def test_the_same_as_simulated_nodes_and_predictions_by_parts(tmp_path, kind):
    model, target_of = MODELS[kind]
    parts, y = make_data()
    target, new = target_of(y), [part[:7] + 1.0 for part in parts]
    model.set_params(solver=Solver(tol=1e-6))
    expected = model.set_params(cluster=LocalCluster(3)).fit(simulated(parts), target)
    right, coef = expected.result_, expected.coef_.copy()
    score = getattr(expected, "decision_function", expected.predict)
    told = score(np.hstack(new))
    with Parties(tmp_path / "p", parts) as parties:
        with_new_data(parties, tmp_path, new)
        cluster = parties.open(terms=PREDICTED)
        model.set_params(cluster=cluster).fit(cluster.shards("cohort"), target)
        np.testing.assert_allclose(score(cluster.shards("new")), told, atol=1e-7)
        left = [e for e in parties.log("north") if e["event"] == "atom"]
    np.testing.assert_allclose(model.coef_, coef, rtol=0, atol=1e-9)
    assert model.result_.ledger.disclosures == right.ledger.disclosures
    assert (model.result_.status, model.result_.rounds) == (right.status, right.rounds)
    assert sum(entry["values"] for entry in left) == sum(
        one.values for one in right.ledger.disclosures if one.party == "north"
    )


def test_a_group_counts_with_all_its_features_against_the_budget(tmp_path):
    from atomcast.federated.kinds import AtomRequest, Scores, Sealed

    parts, y = make_data()
    labels = np.repeat([0, 1, 2, 3, 4], [3, 3, 2, 4, 4])
    weights = np.sqrt(np.bincount(labels))
    posed = {"domain": "group ball", "groups": labels, "group_weights": weights}
    node, begin, _ = offline_node(tmp_path, parts[0], y, posed=posed, atoms=5)
    node.answer(begin)
    found = node.answer(ask())
    assert isinstance(found, Scores)
    assert len(found.ids) == 1  # two groups might have six features
    assert isinstance(node.answer(AtomRequest(int(found.ids[0]))), Sealed)
    (left,) = [e for e in node._records.log.entries if e["event"] == "atom"]
    assert len(left["names"]) == np.sum(labels == labels[int(found.ids[0])])
    assert left["values"] == 60 * len(left["names"])
    assert node.answer(ask(count=2)).exhausted  # no group fits into what is left for sure
    node.close()


def test_a_feature_that_left_alone_is_no_group_that_left(tmp_path):
    """They have the same number, but nobody has the other features of the group."""
    from atomcast.federated.consent import Consents
    from atomcast.federated.kinds import AtomRequest, Sealed
    from atomcast.federated.terms import Terms

    parts, y = make_data()
    node, begin, _ = offline_node(tmp_path, parts[0], y)
    node.answer(begin)
    node.answer(ask())
    assert isinstance(node.answer(AtomRequest(0)), Sealed)
    groups = {"groups": np.arange(16) // 4, "group_weights": np.ones(4)}
    grouped = replace(begin, domain="group ball", **groups)
    offer = Terms().offer(grouped, "coordinator", "")
    node.answer(offer)
    Consents(node.config.state).approve(offer.id, "the privacy officer")
    node.answer(grouped)
    assert "was not proposed" in node.answer(AtomRequest(0)).reason
    assert "have not left" in node.answer(ask(np.full(4, 0.1), [0])).reason
    node.close()


@pytest.mark.parametrize(
    "change",
    [
        {"groups": np.repeat([0, 1], [9, 7])},  # split between two members
        {"groups": np.repeat([1, 0], [8, 8])},  # not numbered in order
        {"groups": np.repeat([0, 1], [8, 7])},  # a feature is in none
        {"group_weights": np.array([1.0, 0.0])},
        {"group_weights": np.array([1.0, np.inf])},
        {"objective": "multinomial", "target": np.repeat([0.0, 2.0], 30)},
        {"domain": "l1 ball", "groups": np.full(16, 2**40)},
        {"folds": np.arange(59) % 3},
        {"folds": np.repeat([0, 2**40], 30)},
    ],
    ids=str,
)
def test_what_makes_no_problem_is_refused_even_if_approved(tmp_path, change):
    parts, y = make_data()
    posed = {"domain": "group ball", "groups": np.repeat([0, 1], 8), "group_weights": np.ones(2)}
    how = {"posed": {**posed, **change}, "radius": (1.0, 2.0)}
    node, begin, _ = offline_node(tmp_path, parts[0], y, **how)
    assert "must be" in node.answer(begin).reason
    node.close()


def test_a_class_of_few_rows_is_refused(tmp_path):
    """Its scores would be their values."""
    parts, y = make_data()
    rare = np.repeat([0.0, 1.0, 2.0], [30, 26, 4])
    posed = {"objective": "multinomial", "target": rare}
    node, begin, _ = offline_node(tmp_path, parts[0], y, posed=posed)
    assert "fewer than 5 rows" in node.answer(begin).reason
    node.close()


# -- cross-validation -----------------------------------------------------------------------------

BETAS = [2.0, 6.0, 12.0]
TERMS = {"radius": (2.0, 12.0), "runs": 12, "purpose": "which radius"}


@pytest.mark.filterwarnings("ignore:the largest radius tried")
@pytest.mark.parametrize(
    ("make", "target_of"),
    [(LassoCV, lambda y: y), (SparseLogisticRegressionCV, lambda y: y > 0)],
    ids=["lasso", "logistic"],
)
def test_cross_validation_chooses_as_with_simulated_nodes(tmp_path, make, target_of):
    parts, y = make_data(rows=90)
    target, how = target_of(y), {"betas": BETAS, "cv": 3, "solver": Solver(tol=1e-6)}
    expected = make(**how, cluster=LocalCluster(3)).fit(simulated(parts), target)
    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open(terms=TERMS)
        model = make(**how, cluster=cluster).fit(cluster.shards("cohort"), target)
        logs = {name: parties.log(name) for name in NAMES}
    losses = type(model)._losses_are
    np.testing.assert_allclose(getattr(model, losses), getattr(expected, losses), rtol=1e-6)
    assert model.beta_ == expected.beta_
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-7)
    for entries in logs.values():
        sent = [entry["id"] for entry in entries if entry["event"] == "atom"]
        assert len(sent) == len(set(sent)) > 0  # what left for one fold is known in all
        runs = [(entry["fold"], entry["radius"]) for entry in entries if entry["event"] == "run"]
        assert len(runs) == len(set(runs)) <= 12
        (offer,) = [entry["terms"] for entry in entries if entry["event"] == "offer"]
        assert offer["folds"].startswith("3 folds, SHA-256 ")
    told = [e["values"] for log in logs.values() for e in log if e["event"] == "atom"]
    ledger = model.result_.ledger.disclosures
    assert [one.values for one in ledger] == told == [90] * len(told)  # whole, in every fold
    heads = model.result_.ledger.audit_heads
    assert {name: log[-1]["hash"] for name, log in logs.items()} == heads
    disclosed = {one.atom for one in model.result_.ledger.disclosures if one.kind == "atom"}
    assert {e["id"] for log in logs.values() for e in log if e["event"] == "atom"} == disclosed


@pytest.mark.filterwarnings("ignore:the largest radius tried")
def test_a_party_whose_budget_the_folds_use_up_is_named(tmp_path):
    parts, y = make_data()
    with Parties(tmp_path / "p", parts) as parties:
        tight = Policy(atoms_total=1)
        parties.configs["south"] = replace(parties.configs["south"], policy=tight)
        cluster = parties.open(terms=TERMS)
        model = LassoCV(BETAS, cv=3, cluster=cluster)
        with pytest.warns(ConvergenceWarning, match="not certified for south"):
            model.fit(cluster.shards("cohort"), y)
        sent = [e for e in parties.log("south") if e["event"] == "atom"]
    assert len(sent) == 1
    assert model.result_.ledger.uncertified == ("south",)


def test_folds_count_against_the_budget_and_no_others_are_answered(tmp_path):
    from atomcast.federated.kinds import Acknowledged

    parts, y = make_data()
    folds = np.arange(60) % 3
    posed = {"folds": folds, "fold": 0}
    terms = {"radius": (1.0, 2.0), "runs": 2}
    node, begin, _ = offline_node(tmp_path, parts[0], y, posed=posed, **terms)
    for fold in (0, 1, 0):
        assert isinstance(node.answer(replace(begin, fold=fold)), Acknowledged)
    assert "2 problems, all used" in node.answer(replace(begin, fold=2)).reason
    assert "no fold 3" in node.answer(replace(begin, fold=3)).reason
    others = folds.copy()
    others[5] = 0  # the difference would be row 5
    assert "nobody here has approved" in node.answer(replace(begin, folds=others)).reason
    node.close()


def test_a_fold_of_few_rows_is_refused_even_if_approved(tmp_path):
    parts, y = make_data()
    folds = np.repeat([0, 1], [56, 4])
    terms = {"radius": (1.0, 2.0), "runs": 9}
    node, begin, _ = offline_node(tmp_path, parts[0], y, posed={"folds": folds}, **terms)
    assert "for cross-validation, tells fewer than 5 rows" in node.answer(begin).reason
    node.close()


def test_what_cross_validation_needs_is_said_before_anything_is_asked(tmp_path):
    parts, y = make_data()
    several = ShuffleSplit(3, random_state=0)
    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open(approve=False)
        shards = cluster.shards("cohort")
        for how, terms, text in (
            ({"cv": several}, TERMS, "each row is held out by just one"),
            ({"cv": KFold(3)}, {}, "say which in the terms"),
            ({"betas": [15.0]}, TERMS, r"radius 15 is not within radius=\(2.0, 12.0\)"),
            ({"betas": None}, {"radius": (2.0, 5.0)}, "give the radii to try"),
        ):
            cluster.terms = replace(type(cluster.terms)(), **terms)
            with pytest.raises(ValueError, match=text):
                LassoCV(**{"betas": BETAS, **how}, cluster=cluster).fit(shards, y)
        with pytest.raises(ValueError, match="y has 59 values, but there are 60 rows"):
            LassoCV(BETAS, cluster=cluster).fit(shards, y[1:])
        assert not parties.approve()


def test_rows_of_a_sparse_feature_are_those_of_the_dense_one():
    from atomcast.federated.folds import of_rows
    from atomcast.messages.atom import Atom

    dense = np.array([0.0, 1.0, 0.0, 2.0, 3.0])
    rows, places = np.array([0, 3, 4]), np.flatnonzero(dense)
    thin = of_rows(Atom(1, 5, dense[places], places), rows)
    assert thin.is_sparse
    np.testing.assert_array_equal(thin.dense(), of_rows(Atom(1, 5, dense), rows).dense())
    np.testing.assert_array_equal(thin.dense(), dense[rows])
