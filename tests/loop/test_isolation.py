"""A node reads its own shard and what was broadcast, and nothing else."""

import numpy as np
import pytest
from scipy import sparse

from atomcast.cluster.node import Fleet
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.loop.solver import Solver
from atomcast.network.star import Star
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.problems.problem import Problem
from atomcast.simulation.local import LocalCluster
from problems import DOMAINS, STEPS, dense_problem, make_domain, regression, solve

TURN = {"node": None}  # the node whose turn it is: the only one that may look at its atoms


class Guarded:
    """Atoms that may be looked at only while it is their own node's turn."""

    def __init__(self, atoms, node):
        self._atoms, self._node = atoms, node
        self.d, self.n = atoms.d, atoms.n
        self.reads = 0

    def _check(self):
        assert TURN["node"] == self._node, f"{TURN['node']} read the shard of node {self._node}"
        self.reads += 1

    def scores(self, replica):
        self._check()
        return self._atoms.scores(replica)

    def atom(self, j, id):
        self._check()
        return self._atoms.atom(j, id)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("step", STEPS)
def test_only_its_owner_looks_at_a_shard(step, domain, monkeypatch):
    """Every read of a shard happens inside a call to the fleet of its own node."""
    X, y = dense_problem(domain, seed=1, d=15, n=24)
    plain = explicit_problem(SquaredError(y), make_domain(domain, 1.0))
    made = []

    def make_atoms(shard):
        made.append(Guarded(plain.make_atoms(shard), node=len(made)))
        return made[-1]

    def in_turn(method):
        def call(self, *arguments):
            assert len(set(self.owner.tolist())) <= 1  # a fleet of one
            TURN["node"] = self.atoms._node
            try:
                return method(self, *arguments)
            finally:
                TURN["node"] = None

        return call

    monkeypatch.setattr(Fleet, "propose", in_turn(Fleet.propose))
    monkeypatch.setattr(Fleet, "atom", in_turn(Fleet.atom))
    problem = Problem(plain.domain, plain.make_active, make_atoms, plain.d, plain.axis)
    shards = Shards.split(X, 5, by=[4, 0, 9, 10, 1])
    result = Solver(step=step, max_rounds=10).solve(problem, shards, LocalCluster(5, isolated=True))
    assert len(made) == 5
    assert result.rounds > 0
    assert all(guard.reads > result.rounds for guard in made)
    for guard in made:
        with pytest.raises(AssertionError, match="read the shard"):
            guard.scores(None)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, sparse.csc_array])
def test_isolated_shards_share_no_memory_with_each_other(layout):
    X, y = regression(seed=2, d=15, n=24)
    session = LocalCluster(4, isolated=True).open(
        explicit_problem(SquaredError(y), L1Ball(1.0)), Shards.split(layout(X), 4)
    )
    assert len(session._fleets) == 4

    def memory(matrix):
        return matrix.data if sparse.issparse(matrix) else matrix

    for i, fleet in enumerate(session._fleets):
        assert set(fleet.owner.tolist()) <= {i}
        for other in session._fleets[i + 1 :]:
            assert not np.shares_memory(memory(fleet.atoms.matrix), memory(other.atoms.matrix))


def said(shards, y, domain, step, isolated, monkeypatch):
    """Everything that crossed an edge: proposals bit by bit, atoms, and the ledger's sums."""
    words = []
    agree, broadcast = Star.agree, Star.broadcast

    def hear_agree(self, proposals, count, ledger):
        columns = ("node", "id", "score", "merit", "best")
        words.extend(getattr(proposals, name).tobytes() for name in columns)
        if proposals.partial is not None:
            words.append(proposals.partial.tobytes())
        return agree(self, proposals, count, ledger)

    def hear_broadcast(self, source, values, size, ledger):
        words.append((source, values, size))
        return broadcast(self, source, values, size, ledger)

    with monkeypatch.context() as patch:
        patch.setattr(Star, "agree", hear_agree)
        patch.setattr(Star, "broadcast", hear_broadcast)
        cluster = LocalCluster(shards.nodes, isolated=isolated)
        result = solve(shards, y, domain, cluster=cluster, step=step, tol=1e-4, max_rounds=15)
    return words, result


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_atoms_that_are_never_proposed_leave_no_trace(step, isolated, monkeypatch):
    """Change the values of atoms that stay silent: not one bit of any message changes."""
    X, y = regression(seed=3, d=20, n=40, support=4, noise=0.1)
    X[:, 25:] *= 1e-6  # too short ever to be proposed by a node that has others
    sizes = [13, 13, 14]
    order = np.random.default_rng(0).permutation(40)
    mixed = X[:, order]
    shards = Shards.split(np.asfortranarray(mixed), 3, by=sizes)
    before, first = said(shards, y, L1Ball(0.8), step, isolated, monkeypatch)
    silent = np.flatnonzero(order >= 25)
    assert not set(first.atom_ids.tolist()) & set(silent.tolist())
    poisoned = mixed.copy()
    poisoned[:, silent] = 1e-7 * np.random.default_rng(1).standard_normal((20, len(silent)))
    shards = Shards.split(np.asfortranarray(poisoned), 3, by=sizes)
    after, second = said(shards, y, L1Ball(0.8), step, isolated, monkeypatch)
    assert len(before) > 5
    assert before == after
    np.testing.assert_array_equal(first.weights, second.weights)


def test_what_arrives_is_a_copy():
    """Nobody can reach into the owner's shard through an atom that was broadcast."""
    X, y = regression(seed=4)
    for matrix in (X, np.asfortranarray(X), sparse.csc_array(X)):
        session = LocalCluster(3).open(
            explicit_problem(SquaredError(y), L1Ball(1.0)), Shards.split(matrix, 3)
        )
        (fleet,) = session._fleets
        atom = fleet.atom(5)
        held = matrix.data if sparse.issparse(matrix) else matrix
        assert not np.shares_memory(atom.values, held)


def test_the_users_data_is_never_written_to():
    X, y = regression(seed=5)
    for matrix in (X.copy(), np.asfortranarray(X), X.astype(np.float32)):
        matrix.flags.writeable = False
        y.flags.writeable = False
        solve(matrix, y, L1Ball(1.0), nodes=3)
        solve(matrix, y, L1Ball(1.0), nodes=3, fit_intercept=True)
    csc = sparse.csc_array(X)
    for part in (csc.data, csc.indices, csc.indptr):
        part.flags.writeable = False
    solve(csc, y, L1Ball(1.0), nodes=3)
