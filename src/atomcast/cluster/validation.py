"""Checks before the first round: every node looks at its own shard, and all learn the outcome."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.machine import machine
from atomcast.data.alignment import check_any, check_same_length, check_same_rows
from atomcast.data.finite import check_finite
from atomcast.data.shards import Shard
from atomcast.errors import ClusterError
from atomcast.loop.replica import Replica
from atomcast.problems.problem import Problem
from atomcast.selection.rules import Balanced

#: Errors that are raised everywhere as what they were where they happened.
_KINDS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (ValueError, TypeError, IndexError, FileNotFoundError, PermissionError, MemoryError)
}


@dataclass(frozen=True)
class ShardReport:
    """What a node tells the others about its shard before the first round.

    Parameters
    ----------
    source : str
        How messages call the shard.
    atoms, length : int
        How many atoms it has, and how long they are.
    total : int
        How many atoms there are on all nodes, as far as this node knows.
    row_digest : str or None
        Hash of the row ids, if they were given.
    error : tuple (type, message) or None
        What is wrong with it.
    machine : str
        Where the node runs, for the log.
    stored : int
        How many values the atoms have in all, zeros of sparse ones left out.
    """

    source: str
    atoms: int = 0
    length: int = 0
    total: int = 0
    row_digest: str | None = None
    error: tuple[str, str] | None = None
    machine: str = ""
    stored: int = 0

    def to_json(self) -> bytes:
        """The report as bytes."""
        return json.dumps(dataclasses.asdict(self)).encode()

    @staticmethod
    def from_json(message: bytes) -> ShardReport:
        """The report that was sent as these bytes."""
        return ShardReport(**json.loads(message))


def checked_shard(problem: Problem, shard: Shard) -> Shard:
    """The shard, if its values are finite and its atoms have the length the objective needs."""
    if not shard.finite:
        check_finite(shard, problem.axis, problem.missing)
    length = shard.length(problem.axis)
    if problem.d is not None and length != problem.d:
        if problem.axis == 0:
            raise ValueError(
                f"{shard.source} has {length} columns, but the signals have {problem.d}; atoms and "
                "signals must be of the same length"
            )
        raise ValueError(
            f"{shard.source} has {length} rows, but the target has {problem.d}; "
            "every shard must describe the same rows, in the same order, as the target"
        )
    if problem.check is not None:
        problem.check(shard)
    return shard


def inspect(
    problem: Problem, load: Callable[[], Shard], total: Callable[[], int], node: int
) -> tuple[Shard | None, ShardReport]:
    """Load and check one node's shard; whatever is wrong goes into the report."""
    try:
        shard = checked_shard(problem, load())
        report = ShardReport(
            source=shard.source,
            atoms=len(shard.ids),
            length=shard.length(problem.axis),
            total=total(),
            row_digest=shard.row_digest,
            machine=machine(),
            stored=shard.matrix.size,  # of a sparse matrix, what is stored
        )
        return shard, report
    except Exception as error:
        return None, ShardReport(f"shard {node}", error=described(error))


def described(error: BaseException) -> tuple[str, str]:
    """An error as its type and message, ready to be told to others."""
    return type(error).__name__, str(error)


def raise_described(error: Sequence[str], where: str) -> None:
    """Raise an error that happened elsewhere, saying where if its message does not."""
    kind, message = error
    if kind not in _KINDS:
        raise ClusterError(f"{where} failed: {kind}: {message}")
    raise _KINDS[kind](message if where in message else f"{where}: {message}")


def check_reports(reports: Sequence[ShardReport], axis: int) -> None:
    """Raise, the same on every node, what is wrong with the first bad shard."""
    for report in reports:
        if report.error is not None:
            raise_described(report.error, report.source)
    if not any(report.atoms for report in reports):
        check_any(0, axis)
    sources = [report.source for report in reports]
    check_same_length([report.length for report in reports], sources, axis=axis)
    if axis == 1:
        check_same_rows([report.row_digest for report in reports], sources)
    for report in reports:
        if report.total != reports[0].total:
            raise ValueError(
                f"{report.source} is one of {report.total} atoms in all, but {reports[0].source} "
                f"one of {reports[0].total}: give every node the same data to cut its shard from"
            )


def check_owners(owners: NDArray[np.integer]) -> None:
    """Raise ValueError unless every atom is held by exactly one node.

    Parameters
    ----------
    owners : array of shape (n,)
        How many nodes hold each atom.
    """
    wrong = np.flatnonzero(owners != 1)
    if len(wrong):
        raise ValueError(
            f"{len(wrong)} of {len(owners)} atoms are not held by exactly one node: atom "
            f"{wrong[0]} is held by {owners[wrong[0]]}. Cut the data in the same way on every "
            "node, e.g. with the same whole number as random_state"
        )


def refuse_balanced(
    replica: Replica, why: str = "which only LocalCluster does: use it, or"
) -> None:
    """Raise ValueError where nodes are not told how fast the others are, and say what to do."""
    if isinstance(replica.selection, Balanced):
        raise ValueError(
            f"selection={replica.selection!r} needs nodes whose speeds are compared, {why} "
            'selection="exact"'
        )


def refuse_some_heard(replica: Replica) -> None:
    """Raise ValueError where a step needs the word of all nodes, and some may not be heard."""
    if replica.step.hears_all:
        raise ValueError(
            f"step={replica.step.name!r} needs all nodes in every round: use a cluster that is not "
            "asynchronous and whose messages are not lost"
        )


#: Why there are no speeds on a network with faults.
WITH_FAULTS = (
    "which a simulated network with faults does not do: say how long nodes take with "
    "LocalCluster(..., compute=1e-3, faults=Faults(slow=...)), and leave the other faults out, "
    "or use"
)
