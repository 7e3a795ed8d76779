"""Matching pursuit: the atoms that explain most of the residual, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from atomcast.atoms.pursued import PursuitActiveSet
from atomcast.messages.proposals import Agreement, Request
from atomcast.messages.status import Status
from atomcast.steps.step import Step

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]

#: What is left of a column that depends on those before it, as a share of its length, is rounding.
DEPENDENT = 1e-10


class Pursuit(Step):
    """A plain matching pursuit: each winner takes what it explains of the residual.

    Parameters
    ----------
    n_nonzero : int or None
        End with so many atoms.
    tol : float or None
        End with a squared norm of the residual of no more than this.
    correlation : float or None
        End where no atom has a larger score.
    atoms_per_round : int
        How many atoms win a round.
    """

    name: ClassVar[str] = "matching-pursuit"
    known_too: ClassVar[bool] = True

    def __init__(
        self,
        n_nonzero: int | None = None,
        tol: float | None = None,
        correlation: float | None = None,
        atoms_per_round: int = 1,
    ) -> None:
        self.n_nonzero, self.tol, self.correlation = n_nonzero, tol, correlation
        self.atoms_per_round = atoms_per_round
        self.ended = False

    def request(self, replica: Replica) -> Request:
        """The atoms that explain most; at the end, what is needed for a guarantee."""
        active = replica.active
        assert isinstance(active, PursuitActiveSet)
        if self.ended:
            self.conclude(active)
            return Request(count=1, known_too=False)
        count = min(self.atoms_per_round, self.room(active))
        return Request(count=count, threshold=self.correlation or 0.0, known_too=self.known_too)

    def room(self, active: PursuitActiveSet) -> int:
        """How many atoms may yet join."""
        if self.n_nonzero is None:
            return self.atoms_per_round
        return self.n_nonzero - self.taken(active)

    def taken(self, active: PursuitActiveSet) -> int:
        """How many atoms have joined."""
        return active.atoms

    def verdict(self, replica: Replica, agreement: Agreement, gap: float) -> Status | None:
        """The run ends one round after its goal was reached."""
        return "reached" if self.ended else None

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Take the winners in, and see whether that was all."""
        active = replica.active
        assert isinstance(active, PursuitActiveSet)
        if len(agreement.id):
            self.fit(active, agreement)
        # Below the target of the run, the residual is rounding.
        small = active.value() <= max(self.tol or 0.0, replica.target)
        nothing_left = agreement.complete and not len(agreement.id)
        self.ended = small or nothing_left or self.room(active) <= 0

    def fit(self, active: PursuitActiveSet, agreement: Agreement) -> None:
        """Move along each winner in turn, as far as the residuals fall."""
        assert active.columns is not None
        for id in agreement.id.tolist():
            start = active.position[id]
            place = start // active.targets
            column = active.seen(active.columns.block(place, place + 1))[:, 0]
            length, weights = float(column @ column), active.weights.copy()
            if length > 0.0:
                weights[start : start + active.targets] += active.residual().T @ column / length
                active.set_weights(weights)

    def conclude(self, active: PursuitActiveSet) -> None:
        """A plain pursuit has no guarantee, and asks the nodes for nothing more."""

    def memory(self) -> dict[str, NDArray[Any]]:
        """Whether the goal was reached."""
        return {"pursuit.ended": np.array([float(self.ended)])}

    def remember(self, memory: dict[str, NDArray[Any]]) -> None:
        """Take over whether the goal was reached."""
        self.ended = bool(memory["pursuit.ended"][0])


class OrthogonalPursuit(Pursuit):
    """Orthogonal matching pursuit: after each round, the best weights of all chosen atoms."""

    name: ClassVar[str] = "orthogonal-matching-pursuit"
    known_too: ClassVar[bool] = False
    one_atom: ClassVar[bool] = False

    def __init__(self, *goals: Any, **options: Any) -> None:
        super().__init__(*goals, **options)
        # The chosen columns are basis @ triangle; those that depend on others are left out.
        self._basis: Floats | None = None
        self._triangle: Floats = np.zeros((0, 0))
        self._chosen: list[int] = []
        self._seen = 0

    def fit(self, active: PursuitActiveSet, agreement: Agreement) -> None:
        """Least squares over all known atoms."""
        self.taken(active)
        assert self._basis is not None
        weights = np.zeros((active.atoms, active.targets))
        targets = active.objective.residual(np.zeros_like(active.image))
        along = self._basis.T @ (active.roots * targets)
        weights[self._chosen] = solve_triangular(self._triangle, along)
        active.set_weights(weights.ravel())

    def _extend(self, active: PursuitActiveSet) -> None:
        """Make the columns that have come orthogonal to those before them."""
        assert active.columns is not None
        new = active.seen(active.columns.block(self._seen, active.atoms))
        basis = np.zeros((active.objective.d, 0)) if self._basis is None else self._basis
        for place, column in enumerate(new.T, start=self._seen):
            along, left = np.zeros(basis.shape[1]), column
            for _ in range(2):  # the second time takes away what rounding has left of the first
                part = basis.T @ left
                along, left = along + part, left - basis @ part
            length = float(np.linalg.norm(left))
            if length <= DEPENDENT * float(np.linalg.norm(column)):
                continue
            k = len(self._chosen)
            triangle = np.zeros((k + 1, k + 1))
            triangle[:k, :k], triangle[:k, k], triangle[k, k] = self._triangle, along, length
            basis, self._triangle = np.column_stack([basis, left / length]), triangle
            self._chosen.append(place)
        self._basis, self._seen = basis, active.atoms

    def taken(self, active: PursuitActiveSet) -> int:
        """How many atoms have joined that do not depend on others."""
        if self._seen < active.atoms:
            self._extend(active)
        return len(self._chosen)

    def conclude(self, active: PursuitActiveSet) -> None:
        """Let the nodes say how well the chosen atoms stand for others (Tropp 2004, ERC)."""
        if active.inverse is None and self.taken(active):
            assert self._basis is not None
            active.inverse = solve_triangular(self._triangle, (active.roots * self._basis).T)
            if active.normalize:
                active.inverse *= np.linalg.norm(self._triangle, axis=0)[:, np.newaxis]

    def verdict(self, replica: Replica, agreement: Agreement, gap: float) -> Status | None:
        """The run ends when all nodes have said that."""
        active = replica.active
        assert isinstance(active, PursuitActiveSet)
        if self.ended and active.inverse is not None and agreement.complete:
            active.recovery = float(np.max(agreement.score, initial=0.0))
        return super().verdict(replica, agreement, gap)
