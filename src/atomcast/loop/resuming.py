"""From a run to a snapshot of it, and back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.loop.credible import check_best, check_memory, check_numbers, check_weights
from atomcast.loop.result import Result
from atomcast.loop.session import Resumable, Session, Sharing
from atomcast.loop.trace import Trace
from atomcast.messages.atom import Atom, check_form
from atomcast.messages.proposals import Agreement
from atomcast.messages.status import Status
from atomcast.storage.container import Arrays
from atomcast.storage.fingerprint import object_fingerprint
from atomcast.storage.snapshot import Outcome, Snapshot, checkpoint_content, parse_checkpoint

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica
    from atomcast.loop.rounds import Best


Floats = NDArray[np.float64]


@dataclass
class Past:
    """What came before the problem at hand: `finished` on its path, `notes` of earlier paths."""

    notes: Arrays = field(default_factory=dict)
    finished: list[Outcome] = field(default_factory=list)

    def add(self, status: Status, replica: Replica, best: Best) -> None:
        """Know of one more finished problem."""
        figures = np.array([best.gap, best.relative_gap, best.objective])
        self.finished.append(
            Outcome(status, replica.round, figures, replica.active.flat(best.weights))
        )


def snapshot_of(
    replica: Replica, best: Best, session: Session, past: Past | None = None
) -> Snapshot:
    """What another process needs to go on from this round."""
    active, past = replica.active, past or Past()
    return Snapshot(
        problem=object_fingerprint(replica.problem),
        data=_resumable(session).fingerprint(),
        step=replica.step.name,
        round=replica.round,
        objective=active.value(),
        ids=np.array(list(dict.fromkeys(active.ids)), dtype=np.int64),
        weights=active.weights.copy(),
        best=active.flat(best.weights),
        best_figures=np.array([best.gap, best.relative_gap, best.objective, best.lowest]),
        idle=best.idle,
        restricted=not best.certified,
        memory={**active.memory(), **replica.step.memory()},
        finished=tuple(past.finished),
        notes=dict(past.notes),
    )


def resume(path: str | os.PathLike[str], replica: Replica, best: Best, session: Session) -> None:
    """Bring a fresh replica to where the run was that wrote the checkpoint.

    The owners broadcast the atoms of the log once more, for the nodes of this run do not know
    them; that is entered in the ledger, in the round that the run goes on from.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no checkpoint, or if it is damaged or of another problem, data or step.
    """
    read = partial(checkpoint_content, path)
    content = session.shared(read) if isinstance(session, Sharing) else read()
    snapshot = parse_checkpoint(content, path)
    _check(path, snapshot, replica, session)
    replica.round = snapshot.round
    session.ledger.round = replica.ledger_round
    owners = _resumable(session).owners(snapshot.ids)
    if np.any(owners < 0):
        raise ValueError(f"{path} has an atom {snapshot.ids[owners < 0][0]}, which no node holds")
    with _making_sense(path):
        check_numbers(snapshot)
        mixed = replica.active.recall_point(snapshot.memory)
    recalled = Agreement(-np.inf, owners, snapshot.ids, np.zeros(len(owners)), mixed=mixed)
    atoms = session.cast(replica, recalled)
    if mixed:  # the nodes have said what their weights stand for: the file need not be believed
        replica.active.receive(atoms, recalled, {}, replica.domain.scale)
        replica.step.remember(snapshot.memory)
        return
    check_form(replica.active, atoms, recalled.new_to(replica.active))
    go_on(path, snapshot, replica, atoms, best)


def start_from(weights: Floats, replica: Replica, session: Session) -> None:
    """Begin with the weights of an earlier solution, shape (n,) or (n * T,), as far as allowed.

    The owners broadcast its atoms once more, for the nodes of this run do not know them; with
    mixtures, they send one of these.
    """
    by_atom, active = weights.reshape(session.n, -1), replica.active
    ids = np.flatnonzero(by_atom.any(axis=1))
    if not session.recalls or not len(ids):
        return
    recalled = Agreement(-np.inf, _resumable(session).owners(ids), ids, np.zeros(len(ids)))
    if replica.step.mixes:
        used = np.flatnonzero(weights)
        active.recall_point({"mixed.ids": used, "mixed.weights": weights[used]})
        recalled = recalled._replace(mixed=True)
        active.receive(session.cast(replica, recalled), recalled, {}, replica.domain.scale)
        return
    atoms = session.cast(replica, recalled)
    check_form(active, atoms, recalled.new_to(active))
    active.append(atoms)
    active.set_weights(replica.domain.project(active.ids, by_atom[ids].ravel()))


def go_on(
    path: str | os.PathLike[str],
    snapshot: Snapshot,
    replica: Replica,
    atoms: Sequence[Atom],
    best: Best | None = None,
) -> None:
    """Bring a fresh replica to the state of a snapshot, given the atoms of its log."""
    active, at_zero = replica.active, abs(replica.active.value())
    replica.round = snapshot.round
    with _making_sense(path):
        check_numbers(snapshot)
        active.recall(atoms, snapshot.memory)
    if len(active.weights) != len(snapshot.weights):
        raise ValueError(f"{path} has {len(snapshot.weights)} weights, not {len(active.weights)}")
    padded = np.zeros(len(snapshot.weights))
    padded[: len(snapshot.best)] = snapshot.best
    active.set_weights(padded)
    with _making_sense(path):
        check_weights(replica)
        check_best(snapshot, replica)
    if best is not None:
        best.keep(replica)
        best.gap, best.relative_gap, best.objective, best.lowest = snapshot.best_figures.tolist()
        best.idle, best.round = snapshot.idle, snapshot.round
        best.certified = not snapshot.restricted
    active.set_weights(snapshot.weights)
    difference = abs(active.value() - snapshot.objective)
    if not difference <= active.rounding * max(abs(snapshot.objective), at_zero):
        raise ValueError(
            f"{path} does not go with this problem: its weights have an objective of "
            f"{active.value():.6g} here, but had {snapshot.objective:.6g}; start a new run"
        )
    with _making_sense(path):
        check_weights(replica)
        check_memory(snapshot, replica)
        active.remember(snapshot.memory)
        replica.step.remember(snapshot.memory)


def finished_results(
    past: Past | None, replica: Replica, best: Best, session: Session
) -> list[Result]:
    """The results of problems that were finished before the checkpoint was written.

    The replica knows all their atoms, and is left as it was; traces are not in a checkpoint.
    """
    active, results = replica.active, []
    weights, memory = active.weights.copy(), active.memory()
    for outcome in [] if past is None else past.finished:
        active.set_weights(outcome.weights)
        again = type(best)()
        again.keep(replica)
        again.gap, again.relative_gap, again.objective = outcome.figures.tolist()
        results.append(again.result(outcome.status, outcome.rounds, replica, session, Trace()))
    active.set_weights(weights)
    active.remember(memory)
    return results


@contextmanager
def _making_sense(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what goes wrong with a memory that no run would write into a ValueError."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{path} does not describe a usable checkpoint: {error}") from error


def _resumable(session: Session) -> Resumable:
    if not isinstance(session, Resumable):
        raise ValueError(
            f"a {type(session).__name__} can neither write nor resume checkpoints: use "
            "LocalCluster, MPICluster or RayCluster, or leave Checkpoint and resume out"
        )
    return session


def _check(
    path: str | os.PathLike[str], snapshot: Snapshot, replica: Replica, session: Session
) -> None:
    """Refuse a checkpoint of another step, problem or data."""
    if snapshot.step != replica.step.name:
        raise ValueError(
            f"{path} was written with step={snapshot.step!r}, but this run has "
            f"step={replica.step.name!r}: use the same step, or start a new run"
        )
    if snapshot.problem != object_fingerprint(replica.problem):
        raise ValueError(
            f"{path} is a checkpoint of another problem: the target or a parameter of the "
            "estimator, such as beta, was a different one; use the same, or start a new run"
        )
    if snapshot.data != _resumable(session).fingerprint():
        raise ValueError(
            f"{path} is a checkpoint of other data: give the same columns and values in the same "
            "order (the number of nodes may differ), or start a new run"
        )
