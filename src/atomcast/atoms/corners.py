"""Examples of structured outputs, as a node holds them: not atoms to hand out, but a sum.

A corner of an example is what another output than the right one would mean for it: the difference
of their joint features, and the loss. Only the sum of the corners of all examples of a node ever
leaves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.blocks import Blocks, balanced
from atomcast.data.shards import Shard
from atomcast.messages.proposals import Request, random_order
from atomcast.structures.output_model import DecodesAll, OutputModel
from atomcast.structures.structured_examples import Examples, Outputs

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]

#: An output is no maximiser if it promises less than others, by more than this share.
ROUNDING = 1e-9
#: A corner found earlier will do if it promises this share of what examples promised on average.
GOOD_ENOUGH = 0.5
#: Bytes that a node takes to remember corners; others are computed again from their outputs.
ROOM = 1 << 28
#: How many outputs that carry no weight are looked at before an example is decoded.
REMEMBERED = 5


class CornerAtoms:
    """The examples of one node, which it answers for with one sum.

    Parameters
    ----------
    examples : Examples
    ids : array of shape (rows,)
        Global ids of the rows, which say in what order examples are visited.
    model : OutputModel
    cache : bool
        Whether outputs that were found earlier may do in the place of decoding.
    """

    def __init__(
        self, examples: Examples, ids: NDArray[np.int64], model: OutputModel, cache: bool
    ) -> None:
        self.examples, self.ids, self.model, self.cache = examples, ids, model, cache
        self.n, self.d = int(examples.starts[-1]), model.d + 1
        self._blocks: Blocks | None = None
        self._corners: dict[tuple[int, int], Floats] = {}
        self._usual = np.inf

    def take(self, rows: NDArray[np.int64]) -> CornerAtoms:
        """Some of the examples, by their rows."""
        return CornerAtoms(self.examples.take(rows), self.ids[rows], self.model, self.cache)

    def contribution(self, replica: Replica, request: Request) -> Floats:
        """What this node adds to the sum: its corners, or where its block steps have led it.

        Returns
        -------
        array of shape (d,), or (d + 2,) after block steps, with what they promised in all and
        how many examples were decoded
        """
        objective: Any = replica.active.objective  # type: ignore[attr-defined]
        w = objective.weights(replica.active.image)
        if not replica.step.needs_blocks:
            return self._worst(w)[1]
        if self._blocks is None:
            self._blocks = Blocks(self.examples.outputs)
        self._blocks.depart(replica.active)
        if request.blocks:
            said = self._epoch(w, objective.C, replica.round)
        else:
            found, said = self._worst(w)
            self._blocks.jump(found)
        self._blocks.arrive(len(replica.active))
        return said

    # -- all examples from the same weights -------------------------------------------------

    def _worst(self, w: Floats) -> tuple[list[Any], Floats]:
        """The worst output of each example, and the sum of their corners."""
        total, found = np.zeros(self.d), list[Any]()
        if isinstance(self.model, DecodesAll):
            for part in self.examples.parts():  # decoded and added up while it is in the cache
                outputs = part.decoded(self.model, w, with_loss=True)
                total += np.append(
                    *self.model.corner_sum(
                        part.rows, part.starts, part.outputs, outputs, part.weights
                    )
                )
                found.extend(outputs)
            return found, total
        for i in range(len(self.examples)):
            x = self.examples.x(i)
            found.append(self.examples.decode(self.model, w, i, with_loss=True))
            corner = self._corner(i, x, found[-1])
            merit = np.array([corner[-1] - corner[:-1] @ w])
            self._check_worst(i, merit, 0, w, corner[None])
            total += corner
        return found, total

    # -- one example after the other --------------------------------------------------------

    def _epoch(self, w: Floats, C: float, round: int) -> Floats:
        """Block steps for all examples, each from where the one before it has led."""
        total, w = np.zeros(self.d + 2), w.copy()
        first_rows = self.ids[self.examples.starts[:-1]]
        for i in np.argsort(random_order(first_rows, round)).tolist():
            total += self._visit(i, w, C)
        self._usual = total[-2] / max(len(self.examples), 1)
        return total

    def _visit(self, i: int, w: Floats, C: float) -> Floats:
        """The best weights for the known outputs of an example; `w` follows."""
        blocks, x, looks = self._blocks, self.examples.x(i), self._looks(i)
        assert blocks is not None
        corners = np.array([self._known(i, x, place) for place in looks])
        merits = C * (corners[:, -1] - corners[:, :-1] @ w)
        here = float(blocks.ahead[i][looks] @ merits)
        decode = not (self.cache and merits.max() - here >= GOOD_ENOUGH * self._usual)
        if decode:
            place = blocks.place(i, self.examples.decode(self.model, w, i, with_loss=True))
            if place not in looks:
                looks = [*looks, place]
                corners = np.vstack([corners, self._known(i, x, place)])
                merits = np.append(merits, C * (corners[-1, -1] - corners[-1, :-1] @ w))
            self._check_worst(i, merits, looks.index(place), C * w, corners)
        before = blocks.ahead[i][looks]
        blocks.ahead[i][looks] = after = balanced(before, merits, C * corners[:, :-1])
        w += C * ((after - before) @ corners[:, :-1])
        return np.append(after @ corners, [float(merits.max()) - here, decode])

    def _looks(self, i: int) -> list[int]:
        """The outputs of an example to look at: those that carry weight, and the latest others."""
        assert self._blocks is not None
        weights = self._blocks.ahead[i]
        idle = np.flatnonzero(weights == 0.0)[-REMEMBERED:] if self.cache else weights[:0]
        return [*np.flatnonzero(weights).tolist(), *idle.tolist()]

    def _known(self, i: int, x: Any, place: int) -> Floats:
        """The corner of a known output of an example, shape (d,)."""
        assert self._blocks is not None
        corner = self._corners.get((i, place))
        if corner is None:
            corner = self._corner(i, x, self._blocks.outputs[i][place])
            if len(self._corners) * corner.nbytes < ROOM:
                self._corners[i, place] = corner
        return corner

    def _corner(self, i: int, x: Any, output: Any) -> Floats:
        """The corner of an example with this output, as much as it counts, shape (d,)."""
        model, right = self.model, self.examples.outputs[i]
        with self.examples.naming(i, f"joint_feature or loss of {type(model).__name__}"):
            joint = model.joint_feature(x, right) - model.joint_feature(x, output)
            corner = np.append(joint, model.loss(right, output))
            if np.shape(joint) != (self.d - 1,) or not np.all(np.isfinite(corner)):
                raise ValueError(
                    f"features must be finite and of shape ({self.d - 1},), the loss a number; "
                    f"features have the shape {np.shape(joint)}"
                )
        weights = self.examples.weights
        return corner if weights is None else weights[i] * corner

    def _check_worst(self, i: int, merits: Floats, worst: int, w: Floats, corners: Floats) -> None:
        """Refuse what was decoded if another output, or the right one, promises more."""
        better = max(float(merits.max()), 0.0)
        if merits[worst] >= better:
            return
        terms = np.abs(corners[:, :-1]) @ np.abs(w)  # what merits are sums of, and rounded with
        if not merits[worst] >= better - ROUNDING * float(np.max(np.abs(merits) + terms)):
            raise ValueError(
                f"example {self.examples.numbers[i]} of {self.examples.source}: decode of "
                f"{type(self.model).__name__} is not exact: its output scores {merits[worst]:.6g} "
                f"with the loss, another one {better:.6g}; the gap is certified for the best only"
            )


def corner_atoms(shard: Shard, model: OutputModel, outputs: Outputs, cache: bool) -> CornerAtoms:
    """The examples of a node's shard."""
    return CornerAtoms(outputs.of(shard), shard.ids, model, cache)
