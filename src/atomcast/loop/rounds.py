"""The rounds of a run: distributed Frank-Wolfe (Algorithm 3 of the paper), whatever the step.

Every process runs these rounds on its own copy of the shared state. A round is: score and propose,
agree, check the gap, broadcast what is new, step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from atomcast.loop.interrupting import Interrupts
from atomcast.loop.replica import Replica
from atomcast.loop.result import Result
from atomcast.loop.session import Session
from atomcast.loop.trace import Row, Trace
from atomcast.messages.proposals import Agreement, Request
from atomcast.messages.status import Status

if TYPE_CHECKING:
    from atomcast.known.mixtures import MixedPoint
    from atomcast.network.ledger import Ledger
    from atomcast.storage.snapshot import Snapshot


def _no_run() -> Snapshot:
    raise RuntimeError("this state belongs to no run: there is nothing to take a snapshot of")


@dataclass(frozen=True, init=False)
class State:
    """What a callback sees: the iterate of this round, certified, before the next step.

    Calling `snapshot` gives what another process needs to go on from here. Where several processes
    run the loop, `speaks` is true on the one that should print and write files. Of so many atoms as
    are `unread`, bounds told that they need not be read in this round.
    """

    round: int
    seconds: float
    objective: float
    gap: float
    relative_gap: float
    tol: float
    replica: Replica
    ledger: Ledger
    snapshot: Callable[[], Snapshot] = _no_run
    speaks: bool = True
    unread: int = 0

    def __init__(
        self,
        round: int,
        seconds: float,
        objective: float,
        gap: float,
        relative_gap: float,
        tol: float,
        replica: Replica,
        ledger: Ledger,
        snapshot: Callable[[], Snapshot] = _no_run,
        speaks: bool = True,
        unread: int = 0,
    ) -> None:
        known = vars(self)  # what is frozen takes three times as long to set one by one
        known["round"], known["seconds"], known["objective"] = round, seconds, objective
        known["gap"], known["relative_gap"], known["tol"] = gap, relative_gap, tol
        known["replica"], known["ledger"], known["snapshot"] = replica, ledger, snapshot
        known["speaks"], known["unread"] = speaks, unread

    @property
    def row(self) -> Row:
        """The round as a row of the trace."""
        ledger = self.ledger
        return Row(
            self.round,
            self.seconds,
            self.objective,
            self.gap,
            self.replica.active.atoms,
            ledger.values,
            ledger.bytes,
            ledger.seconds,
            self.unread,
        )


#: Called once a round. None or True: go on. False: stop. A status: stop for that reason.
Callback = Callable[[State], "Status | bool | None"]


@runtime_checkable
class Finishing(Protocol):
    """What a callback may have beside: it hears of the end, too."""

    def finish(self, state: State) -> None:
        """Called with the last state when the run ends without an error."""
        ...


class Watchers:
    """Who watches a run and may end it, as one: its callbacks, and the user with Ctrl-C.

    As a context, it closes what shows progress.
    """

    def __init__(
        self,
        callbacks: Sequence[Callback],
        interrupts: Interrupts,
        close: Callable[[], None] | None = None,
    ) -> None:
        self._callbacks, self._interrupts, self._close = callbacks, interrupts, close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._close is not None:
            self._close()

    def wish(self, state: State, feasible: bool) -> Status | None:
        """Why one of them wants the run to end, if one does."""
        verdicts = [watch(state) for watch in self._callbacks]
        if self._interrupts.heard and feasible:  # before, there is no model yet
            return "interrupted"
        for verdict in verdicts:
            if isinstance(verdict, str):
                return verdict
            if verdict is not None and not verdict:  # also NumPy's False
                return "stopped"
        return None

    def finish(self, state: State) -> None:
        """Show them the last state."""
        for watch in self._callbacks:
            finish = getattr(watch, "finish", None)
            if finish is not None:  # `isinstance` would take longer than the last round
                finish(state)


class Best:
    """The weights with the smallest gap so far: the ones that are certified best.

    Weights whose relative gap is within the tolerance end the run, and are the ones to return:
    others with a smaller gap may have so small an objective that theirs is not.
    """

    def __init__(self) -> None:
        self.gap = self.lowest = math.inf
        self.objective = self.relative_gap = math.nan
        self.certified = self.enough = False
        self.weights: Any = np.zeros(0)  # as the active set keeps them
        self.image: NDArray[np.float64] | None = None
        self.point: MixedPoint | None = None
        self.idle = 0
        self.round = -1

    def consider(
        self, replica: Replica, gap: float, certified: bool = True, grew: bool = False
    ) -> tuple[float, float, float]:
        """Keep the current weights if no earlier ones have as small a gap.

        A gap that is certified, for it counts all atoms, beats any that is not. Also count the
        rounds without progress: no atom was new, the gap did not shrink and the objective did not
        fall; for with most steps the gap may rise for a long time while the objective falls.
        Returns their objective, what makes a gap relative there, and the gap that is enough.
        """
        value = replica.objective
        unit = replica.unit_at(value)
        first, resumed = self.round < 0, self.round == replica.round
        spent = replica.spent(gap)
        progress = first or gap < self.gap or (not spent and (grew or value < self.lowest))
        if not resumed:  # else this round was counted before the interruption
            self.idle = 0 if progress else self.idle + 1
        self.round = replica.round
        if value < self.lowest:
            self.lowest = value
        target = replica.tol.gap(unit)
        enough = gap <= target
        smaller = gap <= self.gap or enough
        if first or certified > self.certified or (certified == self.certified and smaller):
            self.gap, self.relative_gap, self.certified = gap, gap / unit, certified
            self.enough = enough
            self.objective = value if replica.feasible else math.nan
            self.keep(replica)
        return value, unit, target

    def keep(self, replica: Replica) -> None:
        """Keep the current weights; which of them are not zero is a question for the end."""
        active = replica.active
        self.image, self.point, self.weights = active.image, active.point, active.kept()

    def result(
        self, status: Status, rounds: int, replica: Replica, session: Session, trace: Trace
    ) -> Result:
        """The result of a run that ended with `status`."""
        bounded, kept = replica.domain.bounded, not replica.step.reveals
        known = replica.active.support(self.weights) if self.point is None else self.point.support()
        ids, weights = known
        if replica.active.point is not None and not kept:
            ids, weights = session.put_together(ids, weights)
        return Result(
            objective=self.objective,
            gap=self.gap if bounded else None,
            relative_gap=self.relative_gap if bounded else None,
            rounds=rounds,
            status=status,
            atom_ids=ids,
            atom_weights=weights,
            n=replica.active.total(session.n),
            atom_extras=replica.active.extras_of(ids),
            image=self.image,
            trace=trace,
            ledger=session.ledger,
            content=replica.active.content(ids),
            radius=dict(replica.radius),
            family=replica.problem.family,
            partial=kept and session.apart,
        )


def run(
    replica: Replica,
    best: Best,
    session: Session,
    watchers: Watchers,
    snapshot: Callable[[], Snapshot],
    max_rounds: int,
    rows: list[Row],
) -> Result:
    """Rounds until the gap is small enough, or something else ends the run.

    `rows` is what the trace says of rounds before them.
    """
    start = time.perf_counter()
    known = replica.active.atoms
    while True:
        agreement = replica.foreseen() or session.propose(replica, replica.request())
        gap = gap_of(replica, agreement)
        certified = replica.certifies(agreement)
        grew = replica.active.atoms > known and agreement.sum is None
        value, unit, target = best.consider(replica, gap, certified, grew)
        feasible = replica.feasible
        state = State(
            replica.round,
            time.perf_counter() - start,
            value if feasible else math.nan,
            gap,
            gap / unit,
            target / unit,
            replica,
            session.ledger,
            snapshot,
            session.speaks,
            session.unread,
        )
        rows.append(state.row)
        status = replica.step.verdict(replica, agreement, gap)
        status = status or seen_by_all(state, best, max_rounds)
        if status is not None:
            session.leave()
        wish = watchers.wish(state, feasible)
        status = session.vote(wish if status is None else status)
        if status is not None:
            break
        wanted, known = replica.wanted(agreement), replica.active.atoms
        # Nobody keeps what was cast: it may be large, and in the next round there is more.
        replica.advance(wanted, session.cast(replica, wanted))
        del agreement, wanted  # many signals agree on much, and in the next round again
    watchers.finish(state)
    if not certified:
        status = certify(replica, best, session, status)
    return best.result(status, replica.round, replica, session, Trace(rows))


def gap_of(replica: Replica, agreement: Agreement) -> float:
    """The duality gap; infinite where a node was not heard, whose atoms may be any good."""
    if not agreement.complete:
        return replica.certified(math.inf)
    # The sums S_i of Algorithm 3 add up to the same, but nobody need be believed.
    return replica.certified(replica.active.gap(replica.domain, agreement))


def seen_by_all(state: State, best: Best, max_rounds: int) -> Status | None:
    """Why the run ends before it has come to its end, as every process finds out by itself."""
    if state.round >= max_rounds:
        return "max_rounds"
    # Nothing left to gain but rounding?
    return "stopped" if best.idle >= state.replica.patience else None


def certify(replica: Replica, best: Best, session: Session, status: Status) -> Status:
    """Find the true gap of the last weights, from one round in which all atoms count."""
    gap = gap_of(replica, session.propose(replica, Request(count=1, complete=True)))
    best.consider(replica, gap)
    if best.enough:
        return "optimal"
    # Maybe good enough for the atoms that the selection left in, but not for all.
    return "stopped" if status == "optimal" else status
