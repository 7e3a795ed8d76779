"""Who holds which atoms: a specification that is cheap to make, copy and send.

Nothing is read or cut before a node asks for its own `Shards.shard(i)`.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from atomcast.data.alignment import check_unique
from atomcast.data.matrices import IntArray, Matrix
from atomcast.data.prepared import Prepared

if TYPE_CHECKING:
    from atomcast.data._files import FileShards
    from atomcast.data._mine import LocalShards
    from atomcast.data._split import SplitShards


#: Nodes that a notebook lists.
SHOWN = 20


@dataclass(frozen=True, eq=False)
class Shard:
    """What one node holds: its own atoms and their global ids.

    Attributes
    ----------
    matrix : ndarray or scipy sparse
        The atoms: columns if axis=1, shape (d, n_i), sparse as CSC; rows if axis=0, shape
        (n_i, p), sparse as CSR. float32 or float64; sparse indices are sorted and unique. It may
        be a view of the user's data: never write to it.
    ids : int64 array of shape (n_i,)
        Global ids of the atoms, strictly increasing.
    names : tuple of str or None
        Names of the atoms in the order of `ids`; None if unknown, and always if axis=0, because
        names belong to columns.
    source : str
        How messages call this shard: "shard 3" or "shard 3 (part-03.npz)".
    row_digest : str or None
        Hash of the row ids, if they were given: shards are aligned if their digests agree.
    origin : int
        Global id of the first atom of what `source` names, so that messages can count within a
        file: position = id - origin.
    entry_names : tuple of str or None
        Names of the columns if axis=0, where they are the entries of an atom; for messages.
    finite : bool
        Whether it is known that there is no NaN and no infinity in it.
    kept : int64 array or None
        If atoms are columns, the rows of them that count, rising; None if all do.
    falls : bool
        Whether sparse indices are sorted from the largest to the smallest instead, which only
        those see who ask for it.
    """

    matrix: Matrix
    ids: IntArray
    names: tuple[str, ...] | None
    source: str
    row_digest: str | None = None
    origin: int = 0
    entry_names: tuple[str, ...] | None = None
    finite: bool = False
    kept: IntArray | None = None
    falls: bool = False

    def length(self, axis: int) -> int:
        """How long an atom is."""
        return int(self.matrix.shape[1 - axis]) if self.kept is None else len(self.kept)

    @property
    def stored(self) -> float:
        """How many values there are, of a sparse matrix those stored; of rows that count, about."""
        share = 1.0 if self.kept is None else len(self.kept) / max(self.matrix.shape[0], 1)
        return float(self.matrix.size * share)

    def cut_out(self) -> Shard:
        """The same, with a copy of the rows that count."""
        if self.kept is None:
            return self
        return dataclasses.replace(self, matrix=self.matrix[self.kept], kept=None)

    def shifted(self, offset: int, source: str | None = None) -> Shard:
        """Return this shard with global ids that start `offset` later, and a new name if given.

        A cluster whose processes each hold `Shards.mine` calls it once the sizes are known.
        """
        return dataclasses.replace(
            self,
            ids=self.ids + offset,
            origin=self.origin + offset,
            source=self.source if source is None else source,
        )


class Shards(ABC):
    """A specification of which node holds which atoms, of one of three kinds.

    - `Shards.split(X, nodes)`: I have everything, cut it up.
    - `Shards.mine(X_local)`: this is my share, on this process of an MPI job.
    - `Shards.files(paths)`: each node reads its own file.

    Whether atoms are columns or rows is the estimator's choice, so every method takes `axis`:
    1 if the atoms are columns (features), 0 if they are rows (examples).
    """

    kind: Literal["split", "mine", "files"]
    #: Whether `combine` finds columns by name, so that there may be others than a model has.
    by_name: ClassVar[bool] = False

    # The kinds, which are made of this class, enter themselves here.
    split: ClassVar[type[SplitShards]]
    mine: ClassVar[type[LocalShards]]
    files: ClassVar[type[FileShards]]
    selected: ClassVar[Callable[[Shards, Any], Shards]]

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are on all nodes together, as of one table."""
        return self.rows(), self.count()

    def __getitem__(self, rows: Any) -> Shards:
        """Some of the rows, by number or by mask: what cross-validation asks for."""
        return Shards.selected(self, rows)

    def only(self, i: int) -> Shards:
        """What the process of node i needs of this; by default everything."""
        return self

    def source(self, i: int) -> str:
        """How messages call a shard."""
        return f"shard {i}"

    def arguments(self) -> dict[str, Any] | None:
        """What other processes can make the same shards from; None unless the data is in files."""
        return None

    @property
    @abstractmethod
    def nodes(self) -> int:
        """Number of nodes (1 for `mine`)."""

    @property
    def party_names(self) -> tuple[str, ...] | None:
        """Names of the nodes; None if they are just 0, 1, 2, ..."""
        return None

    @property
    def prepared(self) -> tuple[Prepared, ...] | None:
        """What each party has learned to prepare its table; None if tables are taken as they are.

        With `split`, the whole table is one party's.
        """
        return None

    def prepared_as(self, prepared: tuple[Prepared, ...]) -> Shards:
        """New data, prepared as that of a fit was; raises ValueError if it cannot be."""
        if self.prepared != prepared:
            raise ValueError(
                "the model was fitted to tables that their parties prepared: give new ones as a "
                "DataFrame, as Shards.files, or to Shards with prepare=model.preparation_"
            )
        return self

    @property
    def matrix(self) -> Matrix | None:
        """The whole matrix of a `split`, uncopied; None for the other kinds."""
        return None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the atoms when they are columns, by global id; None if unknown."""
        return self.column_names(axis=1)

    @abstractmethod
    def column_names(self, axis: int = 1) -> tuple[str, ...] | None:
        """Return the names of all columns: the atoms if axis=1, their entries if axis=0."""

    @abstractmethod
    def count(self, axis: int = 1) -> int:
        """Return n, the number of atoms on all nodes together (`mine`: on this process)."""

    @abstractmethod
    def rows(self, axis: int = 1) -> int:
        """Return d, the length of an atom."""

    @abstractmethod
    def assignment(self, axis: int = 1) -> IntArray:
        """Return the node that owns each global id, shape (n,) (`mine`: all zeros)."""

    @abstractmethod
    def shard(self, i: int, axis: int = 1) -> Shard:
        """Return what node `i` holds; the only method that reads or cuts data."""

    def combine(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product of the data with a coefficient for each column, shape (rows, ...)."""
        total = np.zeros((self.rows(), *coef.shape[1:]))
        for i in range(self.nodes):
            shard = self.shard(i)
            total += shard.matrix @ coef[shard.ids]
        return total

    def _repr_html_(self) -> str:
        """What a notebook shows: who holds what, as far as that is known without reading a file."""
        names = self.party_names or [str(i) for i in range(self.nodes)]
        held = [(name, self._held(i)) for i, name in enumerate(names[:SHOWN])]
        held += [("...", "")] if len(names) > SHOWN else []
        rows = "".join(f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in held)
        head = "<thead><tr><th scope=col>node</th><th scope=col>holds</th></tr></thead>"
        return f"<h3>{escape(repr(self))}</h3><table>{head}<tbody>{rows}</tbody></table>"

    def _held(self, i: int) -> str:
        """What a node holds, in words."""
        return self.source(i)

    def row_labels(self, name: Any, axis: int = 1) -> Any:
        """Return what tells the rows, with which the index `name` of a target must agree, or None.

        That is the index of a pandas DataFrame, or the column of row ids if it has this name.
        """
        return None

    def validate(self, axis: int = 1) -> None:
        """Raise ValueError, naming the shard, unless the shards fit together.

        The atoms of all shards must have the same length and, where row ids are given, the same
        rows in the same order; column names must be unique.
        """
        names = self.column_names(axis)
        if names is not None:
            check_unique(names, what="the column name")

    def _check_node(self, i: int) -> None:
        if not 0 <= i < self.nodes:
            raise IndexError(f"there is no shard {i}: these Shards have {self.nodes} (from 0)")
