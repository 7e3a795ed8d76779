"""Who holds which atoms: a specification that is cheap to make, copy and send.

Nothing is read or cut before a node asks for its own `Shards.shard(i)`.
"""

from __future__ import annotations

import dataclasses
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from atomcast.data.alignment import check_unique
from atomcast.data.matrices import IntArray, Matrix
from atomcast.data.sparse_format import check_sparse

if TYPE_CHECKING:
    from atomcast.data._files import FileShards


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
    """

    matrix: Matrix
    ids: IntArray
    names: tuple[str, ...] | None
    source: str
    row_digest: str | None = None
    origin: int = 0
    entry_names: tuple[str, ...] | None = None

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
    """A specification of which node holds which atoms; make one with one of its class methods.

    - `Shards.split(X, nodes)`: I have everything, cut it up.
    - `Shards.mine(X_local)`: this is my share, on this process of an MPI job.
    - `Shards.files(paths)`: each node reads its own file.

    Whether atoms are columns or rows is the estimator's choice, so every method takes `axis`:
    1 if the atoms are columns (features), 0 if they are rows (examples).
    """

    kind: Literal["split", "mine", "files"]
    #: Whether `combine` finds columns by name, so that there may be others than a model has.
    by_name: ClassVar[bool] = False

    @classmethod
    def split(
        cls,
        X: Any,
        nodes: int,
        *,
        by: str | Sequence[int] = "random",
        random_state: Any = 0,
        names: Iterable[str] | None = None,
        party_names: Iterable[str] | None = None,
    ) -> Shards:
        """Cut a matrix that is all here into one shard per node.

        Parameters
        ----------
        X : array-like, scipy sparse or DataFrame of shape (rows, columns)
            Kept, not copied. Sparse data is cut from CSC if the atoms are columns and from CSR
            if they are rows; if `X` is in another layout, one converted copy is made (once per
            Shards object). float32 and float64 are kept; booleans and integers become float64
            shard by shard.
        nodes : int
            Number of nodes; more nodes than atoms leaves some shards empty.
        by : {"random", "contiguous"} or sequence of int
            "random": every atom goes to a node uniformly at random. "contiguous": blocks of
            nearly equal size, which are views of `X`. Sizes, one per node: blocks of these sizes.
        random_state : int, None, numpy Generator, SeedSequence or RandomState
            Seed of by="random"; the assignment stays the same in copies of this object.
        names : iterable of str, optional
            Names of the columns; default: the columns of a DataFrame, else none.
        party_names : iterable of str, optional
            Names of the nodes, for accounts and pictures; default: 0, 1, 2, ...

        Examples
        --------
        >>> import numpy as np
        >>> from atomcast.data import Shards
        >>> shards = Shards.split(np.eye(5), nodes=2, by="contiguous")
        >>> shards.shard(1).ids
        array([3, 4])
        """
        from atomcast.data._split import SplitShards

        check_sparse(X)
        return SplitShards(
            X, nodes, by=by, random_state=random_state, names=names, party_names=party_names
        )

    @classmethod
    def mine(
        cls,
        X_local: Any,
        *,
        names: Iterable[str] | None = None,
        row_ids: Iterable[Any] | None = None,
        party_name: str | None = None,
    ) -> Shards:
        """Say that this matrix is the share of this process in an MPI job.

        Parameters
        ----------
        X_local : array-like, scipy sparse or DataFrame of shape (rows, columns)
            This process's own atoms. The cluster numbers them after those of the lower ranks.
        names : iterable of str, optional
            Names of the columns; default: the columns of a DataFrame, else none.
        row_ids : iterable of int or str, optional
            Ids of the rows, of which a hash is compared between the processes.
        party_name : str, optional
            What accounts call this process, if all processes have a name; default: its rank.
        """
        from atomcast.data._mine import LocalShards

        check_sparse(X_local, parameter="X_local")
        return LocalShards(X_local, names=names, row_ids=row_ids, party_name=party_name)

    @classmethod
    def files(
        cls,
        paths: Iterable[str | os.PathLike[str]] | Mapping[str, str | os.PathLike[str]],
        *,
        row_ids: str | None = None,
        n_features: int | None = None,
        align: str | None = None,
        target: Any = None,
        prefix: bool | Sequence[str] = False,
    ) -> FileShards:
        """Let every node read a file of its own; ids count through the files in their order.

        Parameters
        ----------
        paths : iterable of path, one per node, or dict of name to path
            The nodes have these names in accounts and pictures; default: what the files are
            called, without suffix.
            .npy (memory-mapped), .npz (dense or scipy sparse), .parquet, .csv, .csv.gz, or
            svmlight (.svm, .svmlight, .libsvm, .txt, also .gz).
        row_ids : str, optional
            Column that holds row ids; default: "row_id" where it exists. It is no feature; it
            serves to check that all parts describe the same rows in the same order.
        n_features : int, optional
            Number of columns of svmlight files, which do not say it themselves.
        align : {"inner"}, optional
            Put all parts, and the target, into one order by their row ids, that of the first
            part. Rows that are not in all of them are dropped, with a warning;
            `alignment.dropped` has their ids. By default other rows are an error.
        target : path, "file.csv:column" or pandas Series, optional
            The target, checked or aligned by its row ids (the index of a Series). It is then
            there as the attribute `target`: `Lasso(1.0).fit(shards, shards.target)`.
        prefix : bool or sequence of str, default=False
            Put the party's name (the file's without its suffix, or those given, one for each
            file) and a dot before the names of its columns, which may then be the same in
            several files.
        """
        from atomcast.data._files import FileShards

        return FileShards(
            paths,
            row_ids=row_ids,
            n_features=n_features,
            align=align,
            target=target,
            prefix=prefix,
        )

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


def checked_names(names: Iterable[str], columns: int) -> tuple[str, ...]:
    """Return names as a tuple of str, refusing a number of names other than `columns`."""
    if isinstance(names, str):
        raise TypeError(f"names={names!r} is one text, but one name per column is needed: a list")
    result = tuple(str(name) for name in names)
    if len(result) != columns:
        raise ValueError(
            f"names has {len(result)} entries, but X has {columns} columns: give one name each"
        )
    return result


def contiguous_bounds(sizes: Sequence[int] | IntArray) -> IntArray:
    """Return where blocks of these sizes begin and end, shape (len(sizes) + 1,)."""
    return np.concatenate(([0], np.cumsum(np.asarray(sizes, dtype=np.int64))))
