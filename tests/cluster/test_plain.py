"""Problems as plain data: what comes back is the same, and nothing else can be made."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from atomcast import LocalCluster, Shards, Solver
from atomcast.cluster.consistency import DriftError, check_digests, check_same_facts, facts
from atomcast.cluster.mpi.stored_shards import StoredShards, store
from atomcast.cluster.plain import pack, unpack
from atomcast.cluster.validation import check_owners, check_reports
from atomcast.cluster.validation import inspect as inspect_shard
from atomcast.domains.base import L1Ball, Simplex
from atomcast.loop.replica import Replica
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.steps import STEPS as MAKERS
from patience import PATIENCE
from problems import STEPS, regression

numbers = arrays.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.int8, np.bool_, np.complex128]),
    arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | numbers,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


def assert_same(one, two):
    assert type(one) is type(two)
    if isinstance(one, np.ndarray):
        assert one.dtype == two.dtype
        assert one.shape == two.shape
        assert one.tobytes() == two.tobytes()
    elif isinstance(one, list | tuple):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            assert_same(a, b)
    elif isinstance(one, dict):
        assert_same(list(one), list(two))
        assert_same(list(one.values()), list(two.values()))
    elif isinstance(one, float) and np.isnan(one):
        assert np.isnan(two)
    else:
        assert one == two


@given(plain)
@settings(deadline=None, max_examples=150)
def test_what_is_packed_comes_back(thing):
    assert_same(unpack(pack(thing)), thing)


@given(numbers)
@settings(deadline=None, max_examples=50)
def test_memory_order_and_sharing_are_kept(array):
    ordered = np.asfortranarray(array)
    one, two = unpack(pack([ordered, ordered]))
    assert one is two
    assert one.flags.f_contiguous == ordered.flags.f_contiguous
    np.testing.assert_array_equal(one, ordered)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("domain", [L1Ball(2.0), Simplex()], ids=["l1", "simplex"])
def test_a_problem_that_comes_back_has_the_same_solution(step, domain):
    X, y = regression(seed=1)
    problem = explicit_problem(SquaredError(y, fit_intercept=True), domain)
    again, step_again = unpack(pack([problem, MAKERS[step]("auto")]))
    assert type(step_again) is type(MAKERS[step]("auto"))
    solver = Solver(step=step, max_rounds=10)
    shards = Shards.split(X, 3)
    result = solver.solve(again, shards, LocalCluster(3))
    expected = solver.solve(problem, shards, LocalCluster(3))
    np.testing.assert_array_equal(result.weights, expected.weights)


def test_other_things_that_problems_may_hold():
    rng = np.random.default_rng(5)
    rng.random(3)
    matrix = sparse.random_array((4, 5), density=0.5, format="csr", rng=np.random.default_rng(0))
    function = partial(check_digests, round=3)
    back = unpack(
        pack({"rng": rng, "matrix": matrix, "call": function, "bound": L1Ball(3.0).merit})
    )
    assert back["rng"].random() == rng.random()
    np.testing.assert_array_equal(back["matrix"].toarray(), matrix.toarray())
    assert back["call"].func is check_digests
    assert back["call"].keywords == {"round": 3}
    np.testing.assert_array_equal(back["bound"](np.array([-2.0])), [2.0])


class Foreign:
    """A class that is not atomcast's."""


@pytest.mark.parametrize("thing", [Foreign(), Foreign, lambda: 0, print, object()])
def test_what_is_not_atomcasts_own_is_refused(thing):
    with pytest.raises(TypeError, match=r"\[0\] is .*, which the ranks"):
        pack([thing])


def test_an_array_of_objects_is_refused():
    with pytest.raises(TypeError, match="not plain data"):
        pack(np.array([{}], dtype=object))


@pytest.mark.parametrize(
    "name",
    ["os:system", "builtins:eval", "atomcast.loop.solver:math", "atomcast.domains.base:np.save"],
)
def test_a_message_can_name_nothing_else(name):
    text = json.dumps({"tree": {"@": "name", "name": name}, "arrays": []}).encode()
    with pytest.raises(TypeError, match=r"not a part of|neither a class nor a function"):
        unpack(len(text).to_bytes(8, "little") + text)


# -- what nodes compare -----------------------------------------------------------------------


def test_facts_name_what_differs():
    y = np.arange(5.0)
    told = [
        facts({"problem": explicit_problem(SquaredError(y + k), L1Ball(1.0 + beta))})
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
    shards = Shards.split(make[form](X), 3, names=[f"x{j}" for j in range(20)])
    store(shards, axis, tmp_path)
    stored = StoredShards(tmp_path)
    assert stored.nodes == 3
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
    one, two = (Replica(problem, MAKERS["classic"]("auto"), 1e-4) for _ in range(2))
    assert state_digest(one) == state_digest(two)
    two.active.image = two.active.image + np.eye(len(y))[3] * 5e-324
    assert state_digest(one) != state_digest(two)
