"""Steps of many signals that share rounds, messages and atoms: each is a problem of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast._threads import ranges, run_all
from atomcast.atoms.signals import SignalsActiveSet
from atomcast.domains.ball_product import BallProduct
from atomcast.messages.proposals import Agreement, Request
from atomcast.messages.status import Status
from atomcast.steps.step import Step

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: So many signals are fitted in one piece, at most.
PIECE = 512
#: And so many pieces before what came of them is put where it stays.
AT_A_TIME = 32
#: An error of less than this share of a signal's square counts as so much; and a gap below the
#: second share is rounding.
NEGLIGIBLE, ROUNDING = 1e-10, 1e-14
#: Gaps are a little smaller than they may be, so that rounding does not lift them above that.
NEARLY = 0.999
#: Weights over the known atoms are more exact than is asked of those over all, by this factor.
EXACT = 1e-3


class Coding(Step):
    """What all steps of many signals have in common: rounds in which every open signal chooses."""

    one_atom: ClassVar[bool] = False
    patience: ClassVar[float] = 2
    hears_all: ClassVar[bool] = True
    #: What a batch ends with.
    end: ClassVar[Status] = "optimal"

    def request(self, replica: Replica) -> Request:
        """The best atom of every signal that is not done."""
        active = _signals(replica)
        active.levels = np.where(active.open, self.levels(replica, active), np.inf)
        return Request(known_too=True, signals=len(active.open))

    def levels(self, replica: Replica, active: SignalsActiveSet) -> Floats:
        """The merit above which an atom is of use to a signal, shape (B,)."""
        raise NotImplementedError

    def verdict(self, replica: Replica, agreement: Agreement, gap: float) -> Status | None:
        """The batch is done when all signals are."""
        assert agreement.choice is not None
        return self.end if agreement.complete and not len(agreement.choice.signal) else None


class BallCoding(Coding):
    """The best weights of every signal within its ball, over all known atoms."""

    name: ClassVar[str] = "coding"

    def levels(self, replica: Replica, active: SignalsActiveSet) -> Floats:
        """Where the gap of a signal is as large as it may be; none if there is nothing left."""
        assert isinstance(replica.domain, BallProduct)
        allowed = _allowed(replica, active)
        level = (allowed - active.inners) / replica.domain.radii
        return np.where(active.errors <= allowed, np.inf, np.maximum(level, 0.0))

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Fit all signals that have chosen an atom; the others are done."""
        from atomcast.steps.inner._codes import in_balls

        active = _signals(replica)
        assert isinstance(replica.domain, BallProduct)
        signals, radii = _choosing(active, agreement), replica.domain.radii
        enough, most = EXACT * _allowed(replica, active), min(active.signals.shape[1], len(active))

        def fit(some: slice, products: Floats, codes: Floats) -> None:
            part = signals[some]
            in_balls(active.gram, products, radii[part], enough[part], most, codes)

        _fit(active, signals, fit)


class PursuitCoding(Coding):
    """An orthogonal matching pursuit of every signal.

    Parameters
    ----------
    n_nonzero : int
        How many atoms each signal has, unless fewer explain it.
    """

    name: ClassVar[str] = "coding-pursuit"
    end: ClassVar[Status] = "reached"

    def __init__(self, n_nonzero: int) -> None:
        self.n_nonzero = n_nonzero

    def levels(self, replica: Replica, active: SignalsActiveSet) -> Floats:
        """Zero for a signal that may have more atoms, and has something left to explain."""
        full = np.diff(active.codes.indptr) >= self.n_nonzero
        return np.where(full | (active.errors <= _allowed(replica, active)), np.inf, 0.0)

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Fit the weights of the atoms that each signal has chosen so far."""
        from atomcast.steps.inner._codes import least_squares

        active = _signals(replica)
        signals, choice = _choosing(active, agreement), agreement.choice
        assert choice is not None
        stuck = np.empty(len(signals), dtype=bool)

        def fit(some: slice, products: Floats, codes: Floats) -> None:
            every = np.arange(len(codes))
            supports = np.full((len(codes), self.n_nonzero), -1)
            signal, place = np.nonzero(codes)
            counts = np.bincount(signal, minlength=len(codes))
            first = np.cumsum(counts) - counts
            supports[signal, np.arange(len(signal)) - first[signal]] = place
            supports[every, counts] = active.places(choice.id[some])
            least_squares(active.gram, products, supports, codes)
            # An atom that it has already, or that depends on those it has, is of use no more.
            stuck[some] = np.count_nonzero(codes, axis=1) == counts

        _fit(active, signals, fit)
        active.open[signals[stuck]] = False


def _signals(replica: Replica) -> SignalsActiveSet:
    assert isinstance(replica.active, SignalsActiveSet)
    return replica.active


def _allowed(replica: Replica, active: SignalsActiveSet) -> Floats:
    """The gap that each signal may have."""
    allowed = NEGLIGIBLE * active.squares
    np.maximum(active.errors, allowed, out=allowed)
    if replica.tol.absolute:
        allowed.fill(1.0)
    allowed *= replica.tol.value
    np.maximum(allowed, ROUNDING * active.squares, out=allowed)
    allowed *= NEARLY
    return allowed


def _choosing(active: SignalsActiveSet, agreement: Agreement) -> Ints:
    """The signals that have chosen an atom; if all nodes were heard, the others are done."""
    assert agreement.choice is not None
    if agreement.complete:
        active.open[:] = False
        active.open[agreement.choice.signal] = True
    return agreement.choice.signal


def _fit(
    active: SignalsActiveSet, signals: Ints, fit: Callable[[slice, Floats, Floats], Any]
) -> None:
    """New weights for some signals, a piece of them at a time, on all cores.

    What fits them is told which of them, their products with all atoms, and their codes.
    """
    if not len(signals):
        return
    atoms = active.dictionary
    active.gram  # noqa: B018  # known before the threads begin
    height = min(PIECE, active.height(len(active)))
    pieces = ranges(len(signals), max(-(-len(signals) // height), 1))

    def work(found: dict[int, Any], k: int) -> None:
        part = signals[pieces[k]]
        codes = active.codes[part].toarray()
        fit(pieces[k], active.rows(part) @ atoms.T, codes)
        found[k] = sparse.csr_array(codes)

    def fitted() -> Iterator[sparse.csr_array]:
        for first in range(0, len(pieces), AT_A_TIME):
            some = range(len(pieces))[first : first + AT_A_TIME]
            found: dict[int, Any] = {}
            run_all([partial(work, found, k) for k in some])
            yield from map(found.__getitem__, some)

    active.update(signals, fitted())
