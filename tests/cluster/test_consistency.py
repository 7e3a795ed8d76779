"""What nodes compare before and between rounds, and what is handed to ranks."""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from atomcast import LocalCluster, Shards, Solver
from atomcast.cluster.consistency import DriftError, check_digests, check_same_facts
from atomcast.cluster.mpi.channel import dumps
from atomcast.cluster.mpi.stored_shards import StoredShards, store
from atomcast.cluster.validation import check_owners, check_reports
from atomcast.cluster.validation import inspect as inspect_shard
from atomcast.domains.balls import L1Ball, Simplex
from atomcast.loop.replica import Replica, Tolerance
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.steps import STEPS as MAKERS
from atomcast.storage.facts import facts
from patience import PATIENCE
from problems import STEPS, regression


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("domain", [L1Ball(2.0), Simplex()], ids=["l1", "simplex"])
def test_a_problem_that_comes_back_has_the_same_solution(step, domain):
    X, y = regression(seed=1)
    problem = explicit_problem(SquaredError(y, fit_intercept=True), domain)
    again, step_again = pickle.loads(dumps([problem, MAKERS[step]("auto")]))
    assert type(step_again) is type(MAKERS[step]("auto"))
    solver = Solver(step=step, max_rounds=10)
    shards = Shards.split(X, 3)
    result = solver.solve(again, shards, LocalCluster(3))
    expected = solver.solve(problem, shards, LocalCluster(3))
    np.testing.assert_array_equal(result.weights, expected.weights)


# -- what nodes compare -----------------------------------------------------------------------


def test_facts_name_what_differs():
    y = np.arange(5.0)
    told = [
        facts({"problem": explicit_problem(SquaredError(y + k), L1Ball(1.0 + beta))}, "private")
        for k, beta in ((0.0, 0.0), (1e-15, 0.0), (0.0, 1e-12))
    ]
    check_same_facts([told[0], dict(told[0])])
    with pytest.raises(ValueError, match=r"node 1 was told another problem\.make_active.*\.y "):
        check_same_facts(told[:2])
    with pytest.raises(ValueError, match=r"node 1 was told another problem\.domain\.beta"):
        check_same_facts([told[0], told[2]])


def test_the_odd_one_out_is_named():
    check_digests([7, 7, 7], 0)
    with pytest.raises(DriftError, match=r"round 4: node 1 has another state"):
        check_digests([7, 8, 7], 4)
    with pytest.raises(DriftError, match=r"node 1 has another state"):
        check_digests([7, 8], 4)


def test_the_first_bad_shard_is_named():
    X, y = regression(seed=2, d=6, n=4)
    problem = explicit_problem(SquaredError(y), L1Ball(1.0))
    shards = Shards.split(X, 2)
    reports = []
    for i in range(2):
        _, report = inspect_shard(problem, partial(shards.shard, i), lambda i=i: 4 + i, i)
        reports.append(report)
    with pytest.raises(ValueError, match=r"shard 1 is one of 5 atoms in all, but shard 0 one of 4"):
        check_reports(reports, 1)
    _, failed = inspect_shard(problem, partial(shards.shard, 7), lambda: 4, 1)
    with pytest.raises(IndexError, match=r"shard 1: there is no shard 7"):
        check_reports([reports[0], failed], 1)


def test_atoms_with_no_owner_or_two():
    check_owners(np.ones(3, dtype=int))
    with pytest.raises(ValueError, match=r"2 of 4 atoms .* atom 1 is held by 0"):
        check_owners(np.array([1, 0, 2, 1]))


# -- data on its way to ranks -----------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("form", ["dense", "float32", "csc", "csr", "fortran"])
def test_stored_shards_are_the_same(form, axis, tmp_path):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 20)) * (rng.random((30, 20)) < 0.4)
    make = {
        "dense": np.asarray,
        "float32": np.float32,
        "csc": sparse.csc_array,
        "csr": sparse.csr_array,
        "fortran": np.asfortranarray,
    }
    shards = Shards.split(
        make[form](X), 3, names=[f"x{j}" for j in range(20)], party_names=list("abc")
    )
    store(shards, axis, tmp_path)
    stored = StoredShards(tmp_path)
    assert stored.nodes == 3
    assert stored.party_names == shards.party_names == ("a", "b", "c")
    assert stored.count(axis) == shards.count(axis)
    assert stored.rows(axis) == shards.rows(axis)
    np.testing.assert_array_equal(stored.assignment(axis), shards.assignment(axis))
    for i in range(3):
        one, two = stored.shard(i, axis), shards.shard(i, axis)
        assert (one.names, one.source, one.origin) == (two.names, two.source, two.origin)
        np.testing.assert_array_equal(one.ids, two.ids)
        assert one.matrix.dtype == two.matrix.dtype
        difference = one.matrix - two.matrix
        assert abs(difference).max() == 0
    with pytest.raises(ValueError, match="were cut along axis"):
        stored.shard(0, 1 - axis)


# -- what is not installed --------------------------------------------------------------------

MISSING = """
import sys
for name in ("mpi4py", "ray"):
    sys.modules[name] = None  # as if it were not installed
import numpy as np
import atomcast
from atomcast import Lasso, MPICluster, RayCluster
X, y = np.eye(3), np.ones(3)
Lasso(cluster=2).fit(X, y)
for make, extra in ((MPICluster, "mpi"), (lambda: RayCluster(2).connect(), "ray")):
    try:
        make()
    except ImportError as error:
        assert f"pip install 'atomcast[{extra}]'" in str(error), error
    else:
        raise AssertionError(extra)
"""


def run_python(code):
    source = str(Path(__file__).resolve().parents[2] / "src")
    subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=PATIENCE, env={"PYTHONPATH": source}
    )


def test_engines_that_are_not_installed_are_named():
    run_python(MISSING)


def test_importing_atomcast_imports_no_engine():
    run_python(
        "import sys, atomcast; from atomcast import MPICluster, RayCluster, Lasso; "
        "assert not {'mpi4py', 'ray'} & set(sys.modules)"
    )


def test_a_digest_sees_the_last_bit():
    from atomcast.cluster.consistency import state_digest

    y = regression(seed=4)[1]
    problem = explicit_problem(SquaredError(y), L1Ball(1.0))
    one, two = (Replica(problem, MAKERS["classic"]("auto"), Tolerance(1e-4)) for _ in range(2))
    assert state_digest(one) == state_digest(two)
    two.active.image = two.active.image + np.eye(len(y))[3] * 5e-324
    assert state_digest(one) != state_digest(two)
