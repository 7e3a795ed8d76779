"""Known directions of the function spaces of kernels: what multiple kernel learning broadcasts.

A function of a kernel's space is f = sum_i v_i k(., x_i); the coefficients v are its dual, its
values K v at the examples its image. Owners send images, and everybody works out the duals: those
of a direction are the gradient that it goes against, which all know, and those of kernel columns
are told by their numbers. So inner products within a space, v'K w, are known without the kernel,
and the known directions of each can be made orthonormal: the norm of a function is then that of its
weights, and re-optimising over all known directions, under the exact norm, costs no communication.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.balls import Domain
from atomcast.domains.group_ball import PER_KERNEL, BlockBall
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.columns import grown, with_appended
from atomcast.messages.atom import Atom, Misfit
from atomcast.messages.proposals import Agreement
from atomcast.objectives import Objective

Floats = NDArray[np.float64]

#: How many numbers about its kernel an atom carries first: gamma, and what values are divided by.
ABOUT = 2
#: A direction of which no more than this is new, by squared norm, is one that is known.
NOTHING_NEW = 1e-11
#: By which share of a score rounding may spoil it, in products of orthonormal directions.
ROUNDING = 1e-7
#: So many units of rounding, times the root of the number of examples, an image is off by at most
#: for each unit of its dual: kernels have values of about one.
OFF = 16.0 * float(np.finfo(np.float64).eps)


class DirectionSet(ExplicitActiveSet):
    """Known directions of each kernel, orthonormal in its space, with a weight each.

    Parameters
    ----------
    objective : Objective
    width : int
        How many directions an atom is made of. One that is alone goes against the gradient that
        it was scored with; others are kernel columns, whose numbers the atom carries.
    enough : float, optional
        A value of the objective below this is as good as zero.
    lossless : bool
        Whether a fit that leaves less than a share of that is good enough, whatever its duality
        gap.
    """

    inner_kind = "groups"
    lasting = False
    patience = 8  # the weights of one round may be more vague than those of the next

    def __init__(
        self,
        objective: Objective,
        width: int = 1,
        enough: float | None = None,
        lossless: bool = True,
    ) -> None:
        super().__init__(objective)
        self.quadratic = False  # blocks grow, so that no model of them can be kept
        self.width, self.enough = width, enough
        self._lowest = objective.lower_bound
        self.adopted(lossless)
        self._duals: Floats = np.empty((16, objective.d))
        self._sizes: Floats = np.empty(16)  # the norms of duals
        # Least squares bend alike everywhere, and hinges nowhere more.
        self._bend = float(np.max(objective.curvature(np.zeros(objective.d)).diagonal))
        self._members: dict[int, list[int]] = {}
        self._scored: dict[int, Floats | None] = {}

    def adopted(self, lossless: bool) -> DirectionSet:
        """The same for the next ball of a path."""
        self.lower_bound = self._lowest if lossless else -np.inf
        return self

    def known_of(self, kernel: int) -> list[int]:
        """The positions of the weights of a kernel."""
        return self._members.get(kernel, [])

    def sent_of(self, kernel: int) -> int:
        """How many atoms of a kernel are known."""
        return len(self.known_of(kernel)) // self.width

    def negligible(self) -> float:
        """What was said to be enough, if anything was."""
        return super().negligible() if self.enough is None else self.enough

    def length_of(self, id: int, d: int) -> int:
        """As many images as an atom has directions, one after the other."""
        return d * self.width

    def _length(self, atom: Atom) -> int:
        return self.objective.d * self.width

    def _width(self, d: int) -> int:
        return self.width

    def doubt(self, atom: Atom) -> str | None:
        """Whether its length or its numbers are none that an atom can have."""
        numbers = atom.extras[ABOUT:]
        if len(atom.extras) != ABOUT + (self.width if self.width > 1 else 0):
            return f"it carries {len(atom.extras)} numbers"
        if not np.all((numbers >= -1) & (numbers < self.objective.d)):
            return f"it is of the examples {numbers}"
        if not np.all(np.isfinite(atom.values)):
            return "it has NaN or infinity"
        return super().doubt(atom)

    def receive(
        self,
        atoms: Sequence[Atom],
        agreement: Agreement,
        iterates: Mapping[int | None, Any],
        scale: float,
    ) -> None:
        """Add new directions, which go against the gradients that they were scored with."""
        versions: list[int | None] = [None] * len(agreement.id)
        if agreement.version is not None:
            versions = agreement.version.tolist()
        self._scored = {
            id: self.gradient if version is None else iterates.get(version)
            for id, version in zip(agreement.id.tolist(), versions, strict=True)
        }
        super().receive(atoms, agreement, iterates, scale)

    def _store(self, atoms: Sequence[Atom]) -> None:
        for atom in atoms:
            images = atom.dense().reshape(self.width, -1)
            known = self._members.setdefault(atom.id // PER_KERNEL, [])
            images, duals = self._orthonormal(images, self._duals_of(atom, images), known)
            start, stop = self.position[atom.id], self.position[atom.id] + self.width
            known.extend(range(start, stop))
            self._duals = grown(self._duals, start, stop)
            self._duals[start:stop] = duals
            self._sizes = grown(self._sizes, start, stop)
            self._sizes[start:stop] = np.linalg.norm(duals, axis=1)
            columns = [Atom(atom.id, self.objective.d, image) for image in images]
            self.columns = with_appended(self.columns, self.objective.d, columns)

    def _duals_of(self, atom: Atom, images: Floats) -> Floats:
        """The duals of the functions with these images, shape (width, d)."""
        duals = np.zeros_like(images)
        if self.width > 1:
            examples = atom.extras[ABOUT:].astype(np.int64)
            used = np.flatnonzero(examples >= 0)
            duals[used, examples[used]] = 1.0
            return duals
        gradient = self._scored.get(atom.id)
        if gradient is None:
            raise ValueError(
                f"direction {atom.id} goes against a gradient that is not known here, as where "
                'messages are lost without recovery or a run is resumed: use send="columns"'
            )
        score = float(images[0] @ gradient)
        return gradient[None, :] / score if score > 0.0 else duals

    def _orthonormal(
        self, images: Floats, duals: Floats, known: list[int]
    ) -> tuple[Floats, Floats]:
        """The part of new functions that is orthogonal to known ones, as an orthonormal basis."""
        whole = np.einsum("ij,ij->i", duals, images)
        if known:
            old_images, old_duals = self.columns_at(known), self._duals[known]
            for _ in range(2):  # the second time removes what rounding left
                along = images @ old_duals.T
                images, duals = images - along @ old_images, duals - along @ old_duals
        squares, basis = np.linalg.eigh(duals @ images.T)
        new = squares > NOTHING_NEW * float(whole.max())
        basis = basis / np.sqrt(np.where(new, squares, np.inf))
        return basis.T @ images, basis.T @ duals

    def columns_at(self, positions: list[int]) -> Floats:
        """The images of some known directions, shape (k, d)."""
        assert self.columns is not None
        return np.asarray(self.columns.compiled)[positions]

    def misfit(self, ids: Sequence[int], stated: Floats, iterate: Floats | None = None) -> Misfit:
        """Compare what kernels promise with what their known directions do.

        A direction has all that its kernel promises, and kernel columns have no more than that.
        """
        gradient = self.gradient if iterate is None else iterate
        images = [self.columns_at(self.known_of(id // PER_KERNEL)) for id in ids]
        promised = np.array([np.linalg.norm(each @ gradient) for each in images])
        length = np.array([np.linalg.norm(each) for each in images])
        difference = stated - promised
        if self.width > 1:
            difference = np.minimum(difference, 0.0)
        allowed = self._rounding(length, gradient) + ROUNDING * (np.abs(stated) + promised)
        # What is new in a direction may be so little of it that its rounding is that much more.
        spoilt = float(np.finfo(np.float64).eps) / NOTHING_NEW * float(np.linalg.norm(gradient))
        allowed = allowed + spoilt * length
        return Misfit(difference, allowed, length)

    def vague(self) -> float:
        """By how much the objective may be that of other functions than the duals are of.

        Where kernels are all but singular, directions that are orthonormal may have duals so large
        that their values cancel down to rounding: images are then not quite those of the functions.
        """
        if self.image is None:
            return 0.0
        size = float(np.abs(self.weights) @ self._sizes[: len(self)])
        off = OFF * np.sqrt(self.objective.d) * size
        return float(off * np.linalg.norm(self.gradient) + 0.5 * self._bend * off**2)

    def support(self, weights: Floats | None = None) -> tuple[NDArray[np.int64], Floats]:
        """The ids and weights of atoms of which a weight is not zero, with all their weights."""
        weights = self.weights if weights is None else weights
        used = np.repeat(weights.reshape(-1, self.width).any(axis=1), self.width)
        return np.array(self.ids[: len(used)], dtype=np.int64)[used], weights[used]

    def content(self, ids: NDArray[np.int64]) -> Floats:
        """The duals of the directions of these atoms, shape (k, d)."""
        starts = np.array([self.position[int(id)] for id in ids[:: self.width]], dtype=np.int64)
        rows = (starts[:, None] + np.arange(self.width)).ravel()
        return np.array(self._duals[rows])

    def vertex(self, domain: Domain, id: int, score: float) -> Floats:
        """The vertex in the best direction of the kernel, as far as it is known."""
        assert isinstance(domain, BlockBall)
        known = self.known_of(id // PER_KERNEL)
        weights = np.zeros(len(self))
        weights[known] = domain.direction(id, self.scores()[known])
        return weights
