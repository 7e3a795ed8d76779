"""Examples of structured outputs: a few rows of the data each, and the right output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.data.matrices import cut, take
from atomcast.data.shards import Shard
from atomcast.structures.output_model import DecodesAll, Floats, OutputModel, Rows

Ids = NDArray[np.int64]

#: So many values of the data at a time are looked at, while they are in the cache.
VALUES = 1 << 18


@dataclass(frozen=True, eq=False)
class Examples:
    """The examples of a node.

    Parameters
    ----------
    rows : array or CSR matrix of shape (rows, features)
    lengths : array of shape (n,)
        How many rows each example has, one after the other.
    outputs : sequence of n outputs
        What is right.
    numbers : array of shape (n,)
        The number of each example, by which messages call it.
    source : str
        How messages call all of them.
    weights : array of shape (n,), optional
        How much each counts; by default one.
    places : array, optional
        Which of the rows are theirs, in order; by default all of them.
    """

    rows: Rows
    lengths: Ids
    outputs: Sequence[Any]
    numbers: Ids
    source: str
    weights: Floats | None = None
    places: Ids | None = None

    @cached_property
    def starts(self) -> Ids:
        """Where each example begins, and where the last one ends, shape (n + 1,)."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    def __len__(self) -> int:
        return len(self.outputs)

    def x(self, i: int) -> NDArray[Any]:
        """The rows of an example."""
        block = self._block(*self.starts[i : i + 2].tolist())
        return block.toarray() if sparse.issparse(block) else block

    def _block(self, start: int, stop: int) -> Rows:
        """Some of their rows, which follow each other; uncopied if they do so in the data."""
        if self.places is None:
            return cut(self.rows, start, stop, 0)
        places = self.places[start:stop]
        return take(self.rows, places, 0) if sparse.issparse(self.rows) else self.rows[places]

    def parts(self) -> Iterator[Examples]:
        """The same examples, a few at a time, with rows that are theirs alone."""
        height = max(VALUES // max(self.rows.shape[1], 1), 1)
        start = 0
        while start < len(self):
            most = self.starts[start] + height
            stop = max(int(np.searchsorted(self.starts, most, side="right")) - 1, start + 1)
            part = slice(start, stop)
            yield replace(
                self,
                rows=self._block(int(self.starts[start]), int(self.starts[stop])),
                lengths=self.lengths[part],
                outputs=self.outputs[part],
                numbers=self.numbers[part],
                weights=None if self.weights is None else self.weights[part],
                places=None,
            )
            start = stop

    def decoded(self, model: OutputModel, w: Floats, with_loss: bool) -> list[Any]:
        """The best output of each example, or the one that is best with its loss added."""
        if not isinstance(model, DecodesAll):
            return [self.decode(model, w, i, with_loss) for i in range(len(self))]
        found: list[Any] = []
        for part in self.parts():
            right = part.outputs if with_loss else None
            found.extend(model.decode_all(w, part.rows, part.starts, right))
        return found

    def decode(self, model: OutputModel, w: Floats, i: int, with_loss: bool) -> Any:
        """The same of one example."""
        with self.naming(i, f"decode of {type(model).__name__}"):
            return model.decode(w, self.x(i), self.outputs[i] if with_loss else None)

    @contextmanager
    def naming(self, i: int, method: str) -> Iterator[None]:
        """Say of which example an error of a model is."""
        try:
            yield
        except Exception as error:
            raise ValueError(
                f"example {self.numbers[i]} of {self.source}: {method} failed: "
                f"{type(error).__name__}: {error}"
            ) from error

    def take(self, rows: Ids) -> Examples:
        """The examples that these rows, in order, make up; nothing is copied."""
        start = int(rows[0]) if len(rows) else 0
        stop = start + len(rows)
        if self.places is None and np.array_equal(rows, np.arange(start, stop)):
            return _whole(self, rows, cut(self.rows, start, stop, 0))
        places = rows if self.places is None else self.places[rows]
        return replace(_whole(self, rows, self.rows), places=places)


class Outputs:
    """The right outputs that go with shards, by global id.

    Parameters
    ----------
    lengths : array of shape (n,)
        How many rows of the data each example has.
    outputs : sequence of n outputs
    weights : array of shape (n,), optional
        How much each example counts.
    """

    def __init__(self, lengths: Ids, outputs: Sequence[Any], weights: Floats | None = None) -> None:
        self.lengths, self.outputs, self.weights = lengths, outputs, weights

    def of(self, shard: Shard) -> Examples:
        """The examples of a shard."""
        places, total = self._places(shard), int(self.lengths.sum())
        if len(places) and places[-1] >= total:
            raise ValueError(
                f"y is for {total} rows, but {shard.source} has a row numbered {places[-1]}: "
                "give an output for every example"
            )
        rows = shard.matrix.tocsr() if sparse.issparse(shard.matrix) else shard.matrix
        numbers = np.arange(len(self.outputs))
        known = Examples(rows, self.lengths, self.outputs, numbers, shard.source, self.weights)
        return _whole(known, places, rows)

    def _places(self, shard: Shard) -> Ids:
        return shard.ids


class OwnOutputs(Outputs):
    """The outputs of this process's own share, in its order; no other process knows them."""

    #: Not part of the problem that all processes have in common.
    immaterial: ClassVar[bool] = True
    private: ClassVar[bool] = True

    def _places(self, shard: Shard) -> Ids:
        return shard.ids - shard.origin


def _whole(known: Examples, places: Ids, rows: Rows) -> Examples:
    """Those of some known examples that the rows at these places, in order, make up."""
    lengths, outputs = known.lengths, known.outputs
    held = np.bincount(np.repeat(np.arange(len(lengths)), lengths)[places], minlength=len(lengths))
    chosen = np.flatnonzero(held)
    torn = chosen[held[chosen] < lengths[chosen]]
    if len(torn):
        i = torn[0]
        raise ValueError(
            f"example {known.numbers[i]} has {lengths[i]} rows, of which one node of "
            f"{known.source} holds {held[i]}: a node must hold whole examples, so cut the data "
            "between them"
        )
    right = outputs if len(chosen) == len(outputs) else [outputs[i] for i in chosen.tolist()]
    return replace(
        known,
        rows=rows,
        lengths=lengths[chosen],
        outputs=right,
        numbers=known.numbers[chosen],
        weights=None if known.weights is None else known.weights[chosen],
    )
