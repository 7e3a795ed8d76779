"""What every kind of atoms promises: scores and contents fit together, wherever the atoms are."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomcast.atoms.held import AtomFamilies, Atoms, DivisibleAtoms, FollowingAtoms
from atomcast.data.shards import Shards
from atomcast.errors import FalseMessageError
from atomcast.loop.callbacks import State
from atomcast.loop.solver import Solver
from atomcast.messages.atom import Atom, same
from atomcast.network.wire import codec as wire
from atomcast.problems.problem import Problem
from atomcast.simulation.local import LocalCluster
from atomcast.testing.promise import equal, promise


def check_atoms(problem: Problem, shards: Shards, rounds: int = 8) -> None:
    """Check that the atoms of a problem keep their contract, through the rounds of a small fit.

    Parameters
    ----------
    problem : Problem
        Says by `make_atoms` which kind of atoms.
    shards : Shards
        Small data, on two nodes or more.
    rounds : int, default=8
        How many rounds to watch.

    Raises
    ------
    AssertionError
        Says what is promised and not kept.
    """
    held = [shards.shard(i, problem.axis) for i in range(shards.nodes)]
    nodes = [(problem.make_atoms(shard), shard.ids) for shard in held]
    for atoms, ids in nodes:
        promise(atoms.n == len(ids), f"n={atoms.n!r}, but the shard has {len(ids)} atoms")

    def look(state: State) -> None:
        for atoms, ids in nodes:
            if len(ids):
                _check_scores(atoms, ids, state.replica)

    solver = Solver(max_rounds=rounds, atoms_per_round=2, tol=1e-10, callbacks=[look])
    try:
        apart = solver.solve(problem, shards, LocalCluster(shards.nodes, isolated=True))
    except FalseMessageError as error:
        raise AssertionError(f"scores must be those of the atoms handed out: {error}") from error
    together = solver.solve(problem, shards, LocalCluster(shards.nodes))
    equal(
        together.objective,
        apart.objective,
        "nodes that score in one pass must come to what they come to one by one",
        rtol=1e-6,
    )


def _check_scores(atoms: Atoms, ids: Any, replica: Any) -> None:
    if isinstance(atoms, FollowingAtoms):
        atoms.follow(replica.active)
    scores = atoms.scores(replica)
    promise(scores.shape == (atoms.n,), f"scores have shape {scores.shape}, not ({atoms.n},)")
    promise(not np.isnan(scores).any(), "a score must be a number, or -inf: not to be proposed")
    equal(atoms.scores(replica), scores, "scoring must change nothing", rtol=1e-12)
    merit = replica.domain.merit(scores)
    best = int(np.argmax(merit))
    id = int(ids[best])
    if isinstance(atoms, AtomFamilies):
        id = id * atoms.stride + int(atoms.members()[best])
    _check_atom(atoms.atom(best, id), id, atoms, replica)
    if id in replica.active:
        known = replica.domain.known_merit(replica.active.ids, replica.active.scores())
        equal(
            known[np.array(replica.active.ids) == id].max(),
            merit[best],
            f"the merit of atom {id} must be the one that everybody finds who has received it",
            rtol=1e-5,
            atol=1e-9 * (1 + float(np.abs(merit[np.isfinite(merit)]).max())),
        )
    if isinstance(atoms, DivisibleAtoms):
        rows = np.arange(0, atoms.n, 2)
        part = atoms.take(rows).scores(replica)
        equal(
            part, scores[rows], "some of the atoms must have the scores that all have", 1e-5, 1e-9
        )


def _check_atom(atom: Atom, id: int, atoms: Atoms, replica: Any) -> None:
    promise(isinstance(atom, Atom), f"atom() must return an Atom, got {atom!r}")
    promise(atom.id == id, f"atom() was asked for {id} and gave {atom.id}")
    promise(np.all(np.isfinite(atom.values)), f"atom {id} has values that are no numbers")
    doubt = replica.active.doubt(atom)
    promise(doubt is None, f"atom {id} is none of this problem: {doubt}")
    arrived = wire.decode(wire.encode(atom), replica.active.length_of(id, atoms.d))
    promise(same(arrived, atom), f"atom {id} must arrive as it was sent")
