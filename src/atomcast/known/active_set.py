"""What everybody knows: the atoms broadcast so far, in order, their weights, and the objective.

The log of atoms only grows: an atom whose weight falls to zero stays known, so that none is sent
twice. `ActiveSet` is the contract that steps rely on; `ExplicitActiveSet` serves atoms that are
vectors, and other kinds of atoms bring their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.balls import Domain
from atomcast.known import gram
from atomcast.known.columns import (
    Chosen,
    Columns,
    SparseColumns,
    bends_of,
    grown,
    with_appended,
)
from atomcast.known.gram import Gram
from atomcast.known.mixtures import REMEMBERED, MixedPoint, Mixtures
from atomcast.messages.atom import (
    NO_EXTRAS,
    Atom,
    AtomBatch,
    Misfit,
    Size,
    least_rounding,
    receive,
    rounding,
)
from atomcast.messages.proposals import Agreement
from atomcast.objectives import Objective

Floats = NDArray[np.float64]

#: Up to so many known weights, compiled sweeps are not worth the import of a compiler.
FEW = 150
#: Beyond, they are if this many times the stored values is less than the cube of the weights.
WORTH = 300
#: Exact faces are worth it if weights times the square of what is independent exceed this.
LARGE_FACES = 1e7
#: Where the curvature changes, they are beyond that if columns are sparse; if they are dense, for
#: more weights than these with a model that takes so many operations without sweeps: below, a
#: compiler would make a small first fit wait for seconds.
SOME, EFFORT = 64, 1e8
#: What a gap is divided by where the objective is zero.
LEAST_UNIT = 1e-300


class ActiveSet(ABC):
    """An append-only log of atoms with a weight each, and the objective as a function of these."""

    #: True if the curvature is the same everywhere, so that a Gram matrix can be kept.
    quadratic: bool
    #: A number that the objective never falls below: it bounds the gap where the fit is perfect.
    lower_bound: float = -np.inf
    #: What kind of inner solver finds the best weights; see `steps.inner.choice.KINDS`.
    inner_kind: str = "vertices"
    #: By this share, the same weights may have another value in another process.
    rounding: float = 1e-8
    #: Whether an atom stays what it is from round to round, so that candidates may be kept.
    lasting: bool = True
    #: How many rounds without progress end a run, if it is more than the step says.
    patience: float = 0
    #: The combination A alpha of the atoms, where atoms are vectors.
    image: Floats | None = None
    #: Where the iterate is made of what nodes have sent to a coordinator, what is known of it.
    point: MixedPoint | None = None

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.position: dict[int, int] = {}
        self.extras: dict[int, Floats] = {}
        self._weights: Floats = np.zeros(16)
        #: The products of known atoms that were needed so far, if the curvature never changes.
        self.kept_products = Gram()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def atoms(self) -> int:
        """How many atoms are known; an atom may have more than one weight."""
        return len(self.position)

    def __contains__(self, id: object) -> bool:
        return id in self.position

    @property
    def sweepable(self) -> bool:
        """Whether sweeps over the columns of all known atoms cost less than an inverse would."""
        return False

    @property
    def weights(self) -> Floats:
        """The weight of each known atom, in order of arrival; changed by `set_weights`, `move`."""
        return self._weights[: len(self.ids)]

    def kept(self) -> Any:
        """The weights as they are now, for `support`: no later step changes them."""
        return self.weights.copy()

    def flat(self, kept: Any) -> Floats:
        """What `kept` returned, as a vector in the order of `weights`."""
        return np.asarray(kept)

    def weight_bytes(self) -> Any:
        """What tells weights from others, bit for bit."""
        return self._weights[: len(self.ids)]

    def append(self, atoms: Sequence[Atom]) -> None:
        """Add newly received atoms with weight zero."""
        old = len(self.ids)
        if type(atoms) is AtomBatch:
            self._note(atoms.ids, self._width(atoms.d))
        else:
            for atom in atoms:
                self._note([atom.id], self._width(atom.d))
                if atom.extras.size:
                    self.extras[atom.id] = atom.extras
        if atoms:
            self._weights = grown(self._weights, old, len(self.ids))
            self._weights[old : len(self.ids)] = 0.0
            self._store(atoms)

    def _note(self, ids: Sequence[int], width: int) -> None:
        """Enter new atoms with so many weights each."""
        before, start = len(self.position), len(self.ids)
        twice = [id for id in ids if id in self.position] if before else []
        self.position.update(zip(ids, range(start, start + width * len(ids), width), strict=True))
        if twice or len(self.position) < before + len(ids):
            again = twice or [id for id in ids if ids.count(id) > 1]
            raise ValueError(f"atom {again[0]} was broadcast twice")
        self.ids.extend(ids if width == 1 else np.repeat(ids, width).tolist())

    def receive(
        self,
        atoms: Sequence[Atom],
        agreement: Agreement,
        iterates: Mapping[int | None, Any],
        scale: float,
    ) -> None:
        """Add the new atoms of an agreement, if they are what was agreed on."""
        if agreement.mixed:
            self.go_to(atoms[0])
        else:
            receive(self, atoms, agreement, iterates, scale)

    def shrink(self, factor: float) -> bool:
        """Go toward the origin, if the iterate is made of mixtures; whether it is."""
        return False

    def go_to(self, point: Atom) -> None:
        """Go where mixtures of nodes lead to."""
        raise TypeError(f"a {type(self).__name__} takes no mixtures")

    def doubt(self, atom: Atom) -> str | None:
        """Why an atom as received cannot be one of this problem, if it cannot."""
        return None if np.all(np.isfinite(atom.extras)) else f"its extras are {atom.extras}"

    def beyond_doubt(self, atoms: Sequence[Atom]) -> bool:
        """Whether a look at many atoms at once is enough to know that `doubt` has none of any."""
        return False

    def iterate(self) -> Any:
        """What `misfit` needs of the present iterate once there is another."""
        raise TypeError(f"a {type(self).__name__} receives no atoms")

    def misfit(self, ids: Sequence[int], stated: Floats, iterate: Any = None) -> Misfit:
        """Compare stated scores with those of known atoms that came one after the other.

        They are those at the present iterate, or at an earlier one.
        """
        raise TypeError(f"a {type(self).__name__} receives no atoms")

    def support(self, weights: Floats | None = None) -> tuple[NDArray[np.int64], Floats]:
        """Global ids and weights where a weight is not zero, now or of earlier weights."""
        weights = self.weights if weights is None else weights
        used = weights.nonzero()[0]
        return self.weight_ids[used], weights[used]

    @property
    def weight_ids(self) -> NDArray[np.int64]:
        """The global id of each weight."""
        return np.array(self.ids, dtype=np.int64)

    def atoms_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The atom that each of some weights, by their global ids, belongs to."""
        return ids

    def extras_of(self, ids: NDArray[np.int64]) -> Floats:
        """The extras of some atoms of the support, shape (k, m)."""
        if not self.extras:
            return np.zeros((len(ids), 0))
        rows = [self.extras.get(int(id), NO_EXTRAS) for id in ids]
        return np.stack(rows) if rows else np.zeros((0, 0))

    def total(self, n: int) -> int:
        """How many weights there are in all where the nodes hold n atoms."""
        return n

    def gap(self, domain: Domain, agreement: Agreement) -> float:
        """The duality gap of the weights, where all nodes were heard."""
        return domain.gap(self.inner(), agreement.best)

    def vague(self) -> float:
        """By how much the objective may be another, for rounding in what is known of the atoms."""
        return 0.0

    def negligible(self) -> float:
        """Below this, a value of the objective is as good as zero; asked before the first atom."""
        return 1e-10 * abs(self.value())

    def vertex(self, domain: Domain, id: int, score: float) -> Floats:
        """The weights of the vertex of the domain that an agreed atom stands for."""
        weights = np.zeros(len(self))
        weights[self.position[id]] = domain.scale * domain.sign(score)
        return weights

    def toward(self, domain: Domain, id: int, score: float, step: float | None = None) -> None:
        """Move toward the vertex of an agreed atom, by this step in [0, 1] or by the best one."""
        change = self.vertex(domain, id, score) - self.weights
        if step is None:
            self.search(change, 1.0)
        else:
            self.move(change, step)

    def length_of(self, id: int, d: int) -> int:
        """How long the atom with this id is where the columns or points of the data have d."""
        return d

    def _width(self, d: int) -> int:
        """How many weights an atom with so many values has."""
        return 1

    def clear(self, position: int) -> None:
        """Set a weight that is zero up to rounding to exactly zero."""
        self._weights[position] = 0.0

    def content(self, ids: NDArray[np.int64]) -> Any:
        """What a model needs to know of its atoms besides their ids; nothing, as a rule."""
        return None

    def longest(self) -> float:
        """The largest norm of a known atom; zero if there is none."""
        raise TypeError(f"a {type(self).__name__} receives no atoms")

    def recall(self, atoms: Sequence[Atom], memory: dict[str, NDArray[Any]]) -> None:
        """Receive all atoms of an earlier run at once; the memory is that of its active set."""
        self.append(atoms)

    def memory(self) -> dict[str, NDArray[Any]]:
        """What was updated from round to round, and has its own rounding in it.

        Steps that compare slopes which are equal but for rounding may otherwise go another way.
        """
        return {} if self.image is None else {"image": self.image}

    def recall_point(self, memory: dict[str, NDArray[Any]]) -> bool:
        """Know the weights of a point that is made of mixtures, if the memory is of one."""
        return False

    def remember(self, memory: dict[str, NDArray[Any]]) -> None:
        """Take over the memory of an active set with the same atoms and weights."""
        if self.image is not None:
            self.image = memory["image"]

    @abstractmethod
    def _store(self, atoms: Sequence[Atom]) -> None:
        """Keep the content of new atoms."""

    @abstractmethod
    def value(self) -> float:
        """The objective at the current weights."""

    @abstractmethod
    def inner(self) -> float:
        """The product <alpha, grad f(alpha)>."""

    @abstractmethod
    def scores(self) -> Floats:
        """The gradient of the objective with respect to each known atom's weight."""

    @abstractmethod
    def set_weights(self, weights: Floats) -> None:
        """Replace all weights."""

    @abstractmethod
    def move(self, change: Floats, step: float) -> None:
        """Add `step` times a change to the weights."""

    @abstractmethod
    def search(self, change: Floats, max_step: float) -> float:
        """Move along a change by the best step in [0, max_step]; returns that step."""

    @abstractmethod
    def products(self, start: int, stop: int) -> Floats:
        """Columns start to stop of A'HA, H the curvature at the current weights."""

    def products_with(self, atoms: Sequence[Atom]) -> Floats | None:
        """The last m columns that A'HA would have with m more atoms; None where atoms are not so.

        The shape is (k + m, m): the products with the k known atoms, and among the new ones.
        """
        return None

    def steepness(self) -> float:
        """How much of the square of the gradient the curvature holds; see `Objective`."""
        return 0.0

    def hessian(self, positions: NDArray[np.int64]) -> Floats:
        """The part of A'HA that belongs to some of the weights, shape (m, m)."""
        return self.products(0, len(self))[np.ix_(positions, positions)]


class ExplicitActiveSet(ActiveSet):
    """Atoms that are vectors of length d, and an objective of their combination z = A alpha."""

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self.objective = objective
        self.quadratic = objective.quadratic
        self.lower_bound = objective.lower_bound
        self.columns: Columns | None = None
        self.image: Floats = np.zeros(objective.d)
        self.image.flags.writeable = False  # as in `_at`
        #: At a coordinator, the mixtures that nodes have sent.
        self.point = None
        self.mixtures: Mixtures | None = None
        #: The atoms that a coordinator alone knows, with those that everybody does.
        self.pool: ExplicitActiveSet | None = None
        self._gradient: tuple[Floats, Floats] | None = None
        self._value: tuple[Floats, float] | None = None
        self._inner: tuple[Floats, float] | None = None
        self._own_lengths = np.zeros(0)

    def negligible(self) -> float:
        """What the objective says, if it can cross zero; else a tiny share of its value at zero."""
        stated = self.objective.negligible
        return super().negligible() if stated is None else stated

    def go_to(self, point: Atom) -> None:
        """Go to an image, which is followed by the shares of mixtures in it."""
        told = point.dense()
        image, shares = np.split(told, [self.image.size])
        known = self.point or MixedPoint(np.zeros(0, dtype=np.int64), np.zeros(0))
        self._weights[:] = 0.0
        self.image = image.reshape(self.image.shape)
        self.point = replace(known, shares=shares.reshape(-1, REMEMBERED))

    def memory(self) -> dict[str, NDArray[Any]]:
        """The image, and the weights of a point that is made of mixtures."""
        known = super().memory()
        if self.point is not None:
            known |= {"mixed.ids": self.point.ids, "mixed.weights": self.point.weights}
        return known

    def recall_point(self, memory: dict[str, NDArray[Any]]) -> bool:
        """Know the weights of a point that is made of mixtures; not its image."""
        if "mixed.ids" not in memory:
            return False
        ids, weights = memory["mixed.ids"], memory["mixed.weights"]
        if ids.dtype != np.int64 or ids.shape != weights.shape or ids.ndim != 1:
            raise ValueError("the weights of its mixtures do not fit their ids")
        self.point = MixedPoint(ids, weights)
        return True

    def shrink(self, factor: float) -> bool:
        """Go toward the origin, if the iterate is made of mixtures; whether it is."""
        if self.point is None:
            return False
        self.image, self.point = factor * self.image, self.point.scaled(factor)
        if self.mixtures is not None:
            self.mixtures.shares = factor * self.mixtures.shares
        if self.pool is not None:
            self.pool.set_weights(factor * self.pool.weights)
        return True

    def support(self, weights: Floats | None = None) -> tuple[NDArray[np.int64], Floats]:
        """Global ids and weights where a weight is not zero, as far as they are known here."""
        if self.point is None or weights is not None:
            return super().support(weights)
        return self.point.support()

    @property
    def sweepable(self) -> bool:
        """Whether sweeps over the columns of all known atoms cost less than an inverse would.

        That is a matter of operations. In a round whose batch is a tenth of the known atoms, an
        inverse takes about k^3 / 5 to keep up to date, and sweeps and steps on a face some hundred
        products with the columns. Where the curvature changes, all products begin anew each time.
        No more columns than they have entries are independent, and in the inverse. But products of
        too many columns would not fit in memory, however few are independent.
        """
        k = len(self)
        if self.columns is None or k != self.columns.count:  # a feature has a weight for each class
            return False
        if k > gram.MOST_WEIGHTS:
            return True
        if not self.quadratic:
            sparse = isinstance(self.columns, SparseColumns)
            return k > FEW if sparse else k > SOME and k * (self.columns.stored + k**2) > EFFORT
        independent = min(k, self.objective.d)
        return independent > FEW and independent**3 > WORTH * self.columns.stored

    @property
    def multipliable(self) -> bool:
        """Whether products of all known columns can be kept, and are worth compiled code.

        Faces of small problems take little time one way or the other, but a compiler takes seconds.
        """
        k, alone = len(self), self.columns is not None and len(self) == self.columns.count
        fits = self.quadratic and alone and FEW < k <= gram.MOST_WEIGHTS
        return fits and (k * min(k, self.objective.d) ** 2 > LARGE_FACES or self.sweepable)

    @property
    def gradient(self) -> Floats:
        """The gradient of the objective at the current image, computed once per image."""
        if self._gradient is None or self._gradient[0] is not self.image:
            self._gradient = self.image, self.objective.gradient(self.image)
        return self._gradient[1]

    def sketch(self) -> ExplicitActiveSet:
        """The same atoms with weights of their own, to try something out."""
        other = copy(self)
        other._weights = self._weights.copy()
        return other

    def _store(self, atoms: Sequence[Atom]) -> None:
        self.columns = with_appended(self.columns, self.objective.d, atoms)
        if type(atoms) is AtomBatch and atoms.extras is not None:
            self.extras.update(zip(atoms.ids, atoms.extras, strict=True))

    def _length(self, atom: Atom) -> int:
        """How long an atom with this id is."""
        return self.objective.d

    def doubt(self, atom: Atom) -> str | None:
        """Whether it has another length than it should, or extras that are no numbers."""
        if atom.d != self._length(atom):
            return f"it has {atom.d} values instead of {self._length(atom)}"
        return super().doubt(atom) if atom.extras.size else None

    def longest(self) -> float:
        """The largest norm of a known column."""
        if self.columns is None:
            return 0.0
        nothing = np.zeros(self.objective.d)
        return float(self.columns.measured(0, self.columns.count, nothing)[1].max())

    def iterate(self) -> Floats:
        """The gradient."""
        return self.gradient

    def misfit(self, ids: Sequence[int], stated: Floats, iterate: Floats | None = None) -> Misfit:
        """Compare stated scores with the products of the atoms and the gradient."""
        assert self.columns is not None
        gradient, start = self.gradient if iterate is None else iterate, self.position[ids[0]]
        if len(ids) == 1:  # a single number is quicker on its own
            score, norm = self.columns.measured_one(start, gradient)
            difference = stated.item(0) - score
            allowed = least_rounding(score, len(gradient))  # mostly, no more is needed
            if not abs(difference) <= allowed:
                allowed = self._rounding(norm, gradient)
            return Misfit([difference], [allowed], [norm])
        scores, length = self.columns.measured(start, start + len(ids), gradient)
        return Misfit(stated - scores, self._rounding(length, gradient), length)

    def _rounding(self, length: Size, gradient: Floats) -> Size:
        """How far the products of a gradient with atoms of these lengths may be off."""
        vague = self.objective.vagueness
        allowed = rounding(length, gradient)
        return allowed + vague * length if vague else allowed

    def _combined(self, weights: Floats) -> Floats:
        return np.zeros(self.objective.d) if self.columns is None else self.columns.combine(weights)

    def value(self) -> float:
        """The objective at the current image, computed once per image."""
        if self._value is None or self._value[0] is not self.image:
            self._value = self.image, self.objective.value(self.image)
        return self._value[1]

    def inner(self) -> float:
        """The product of image and gradient, <alpha, grad f(alpha)>, computed once per image."""
        if self._inner is None or self._inner[0] is not self.image:
            self._inner = self.image, float(self.image.dot(self.gradient))
        return self._inner[1]

    def scores(self) -> Floats:
        """The product of each known atom with the gradient."""
        return np.zeros(0) if self.columns is None else self.columns.scores(self.gradient)

    def set_weights(self, weights: Floats) -> None:
        """Replace all weights; the image is computed afresh."""
        self._weights[: len(self.ids)] = weights
        self._at(self._combined(self.weights))

    def _at(self, image: Floats) -> None:
        """Be at a new image, which nobody can change: objectives know it again at a glance."""
        image.flags.writeable = False
        self.image = image

    def move(self, change: Floats, step: float) -> None:
        """Add `step` times a change to the weights."""
        self._shift(change, self._combined(change), step)

    def search(self, change: Floats, max_step: float) -> float:
        """Move along a change by the best step in [0, max_step]; returns that step."""
        image_change = self._combined(change)
        step = self.objective.line_search(self.image, image_change, max_step)
        self._shift(change, image_change, step)
        return step

    def toward(self, domain: Domain, id: int, score: float, step: float | None = None) -> None:
        """Move toward the vertex of an agreed atom, and the image toward that of the vertex.

        The image of the weights is known: however many atoms there are, one column is read.
        """
        vertex = self.vertex(domain, id, score)
        image_change = self._vertex_image(vertex) - self.image
        if step is None:
            step = self.objective.line_search(self.image, image_change, 1.0)
        self._shift(vertex - self.weights, image_change, step)

    def _vertex_image(self, vertex: Floats) -> Floats:
        (used,) = vertex.nonzero()
        if len(used) != 1 or self.image.ndim > 1 or self.columns is None:
            return self._combined(vertex)
        return vertex[used[0]] * self.columns.column(int(used[0]))

    def _shift(self, change: Floats, image_change: Floats, step: float) -> None:
        self._weights[: len(self.ids)] += step * change
        self._at(self.image + step * image_change)

    def lengths(self, diagonal: Floats) -> Floats:
        """The product a_j' diag(diagonal) a_j of each known column with itself, shape (k,).

        Where the curvature never changes, those of earlier rounds are kept.
        """
        assert self.columns is not None
        kept = self._own_lengths if self.quadratic else self._own_lengths[:0]
        self._own_lengths = np.append(kept, self.columns.lengths(diagonal, len(kept)))
        return self._own_lengths

    def products(self, start: int, stop: int) -> Floats:
        """Columns start to stop of A'HA, H the curvature at the current image."""
        assert self.columns is not None
        if self.columns.thin(stop - start):
            every, new = slice(None), slice(start, stop)
            return self._cross(every, every if start == 0 else new)
        return self._across(self.columns, self.columns, start, stop)

    def _across(self, columns: Columns, others: Columns, start: int, stop: int) -> Floats:
        """The products a_j' H b_k of columns with the others from start to stop, (count, m)."""
        curvature = self.objective.curvature(self.image)
        diagonal = np.asarray(curvature.diagonal)
        if diagonal.ndim:
            result = columns.products(others.block(start, stop) * diagonal[:, None])
        else:
            last = columns is others and stop == columns.count
            result = columns.among(start) if last else columns.products(others.block(start, stop))
            result *= diagonal
        if curvature.rank_one is not None:
            along = columns.scores(curvature.rank_one)
            across = along if columns is others else others.scores(curvature.rank_one)
            _centre(result, along, across[start:stop])
        return result

    def products_with(self, atoms: Sequence[Atom]) -> Floats | None:
        """The last m columns that A'HA would have with m more atoms, shape (k + m, m)."""
        if self.inner_kind != "vertices" or any(self._width(atom.d) > 1 for atom in atoms):
            return None
        new = with_appended(None, self.objective.d, atoms)
        parts = [new] if self.columns is None else [self.columns, new]
        return np.concatenate([self._across(part, new, 0, new.count) for part in parts])

    def bends(self, atoms: Sequence[Atom]) -> Floats:
        """The second derivatives along some atoms, which need not be known, shape (k,)."""
        curvature = self.objective.curvature(self.image)
        if isinstance(atoms, AtomBatch):
            return bends_of(atoms, np.asarray(curvature.diagonal), curvature.rank_one)
        return np.array([curvature.bend(atom.dense()) for atom in atoms])

    def steepness(self) -> float:
        """What the objective says."""
        return self.objective.steepness(self.image)

    def hessian(self, positions: NDArray[np.int64]) -> Floats:
        """The part of A'HA that belongs to some of the atoms, shape (m, m)."""
        return self._cross(positions, positions)

    def _cross(self, left: Chosen, right: Chosen) -> Floats:
        """The products of some of the atoms with others in A'HA, shape (l, r)."""
        assert self.columns is not None
        curvature = self.objective.curvature(self.image)
        result = self.columns.cross(left, right, np.asarray(curvature.diagonal))
        if curvature.rank_one is not None:
            along = self.columns.scores(curvature.rank_one)
            _centre(result, along[left], along[right])
        return result


def _centre(products: Floats, left: Floats, right: Floats) -> None:
    """Subtract what a curvature of rank one takes from products of columns, in place."""
    constant = np.outer(left, right)
    products -= constant
    # What centring leaves of a constant atom is rounding, not a direction.
    products[np.abs(products) <= 1e-14 * np.abs(constant)] = 0.0
