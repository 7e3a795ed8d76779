"""What a root passes on: the candidates that matter most beside all that it has seen."""

import copy

import numpy as np
import pytest

from atomcast.atoms.explicit import DenseAtoms
from atomcast.domains.balls import L1Ball
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.kernels.functions import KernelSpec
from atomcast.known.kernels.labels import LabelCode, Unsigned, one_vs_one
from atomcast.known.kernels.machine_set import MachineActiveSet
from atomcast.known.kernels.storage import Storage
from atomcast.messages.atom import Atom
from atomcast.objectives import SquaredError
from atomcast.steps.inner.corral import Corral
from atomcast.steps.pool import Pool
from problems import regression

KNOWN = 4


@pytest.fixture
def atoms_and_known():
    """Twenty atoms, an active set that knows four of them, and the radius."""
    X, y = regression(seed=4, d=15, n=20)
    held = DenseAtoms(X)
    atoms, active, domain = [held.atom(j, j) for j in range(20)], None, L1Ball(2.0)
    active = ExplicitActiveSet(SquaredError(y))
    active.append(atoms[:KNOWN])
    Corral(domain).minimise(active, 1e-12)
    return atoms, active, domain


def weights_over(atoms, active, domain):
    """The size of each atom's weight at the optimum over all of them."""
    whole = copy.deepcopy(active)
    whole.append(atoms[KNOWN:])
    Corral(domain).minimise(whole, 1e-12)
    return np.abs(whole.weights)


@pytest.mark.parametrize("batches", [[16], [5, 11]], ids=["at once", "in two rounds"])
def test_the_heaviest_beside_all_that_was_seen_are_picked(atoms_and_known, batches):
    atoms, active, domain = atoms_and_known
    before, pool = active.weights.copy(), Pool(active, Corral(domain))
    start = KNOWN
    for size in batches:
        shown, start = atoms[start : start + size], start + size
        taken = pool.pick(shown, 1e-12, 0.25, 100)
    first = start - batches[-1]
    weight = weights_over(atoms, active, domain)[first:]
    expected = np.flatnonzero(weight >= 0.25 * weight.max())
    assert 1 < len(expected) < len(weight)
    assert sorted(taken.tolist()) == expected.tolist()
    assert np.all(np.diff(weight[taken]) <= 1e-12)
    assert pool.pick(shown, 1e-12, 0.25, 1).tolist() == [int(np.argmax(weight))]
    np.testing.assert_array_equal(active.weights, before)  # nobody else knows


def test_where_no_candidate_has_a_weight_the_best_one_is_passed_on(atoms_and_known):
    atoms, active, domain = atoms_and_known
    useless = int(np.flatnonzero(weights_over(atoms, active, domain)[KNOWN:] == 0)[0]) + KNOWN
    pool = Pool(active, Corral(domain))
    pool.pick(atoms[KNOWN:], 1e-12, 0.25, 100)
    assert pool.pick([atoms[useless]], 1e-12, 0.25, 100).tolist() == [0]


def test_a_pool_that_has_not_seen_what_everybody_knows(atoms_and_known):
    atoms, active, domain = atoms_and_known
    pool = Pool(active, Corral(domain))
    assert pool.holds(active)
    active.append(atoms[KNOWN : KNOWN + 1])
    assert not pool.holds(active)
    pool.pick(atoms[KNOWN : KNOWN + 2], 1e-12, 0.25, 100)
    assert pool.holds(active)


def test_kernel_machines_have_copies_that_go_their_own_way():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((9, 2))
    atoms = [Atom(k, 2, points[k], extras=np.array([k % 3.0])) for k in range(9)]
    code, storage = Unsigned(**vars(LabelCode(3, np.full(3, 10.0)))), Storage(1 << 20, np.float64)
    active = MachineActiveSet(KernelSpec("rbf", gamma=0.3), code, storage, one_vs_one(3))
    active.append(atoms[:6])
    active.set_weights(np.ones(len(active)))
    value, other = active.value(), copy.deepcopy(active)
    assert other.value() == value
    other.append(atoms[6:])
    other.set_weights(np.ones(len(other)))
    assert (active.value(), active.atoms) == (value, 6)
