"""Features in groups: shards that keep a group on one node, and dummy variables in groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from atomcast.data._split import SplitShards
from atomcast.data.matrices import IntArray
from atomcast.data.table_files import load_pandas

if TYPE_CHECKING:
    import pandas


class GroupedShards(SplitShards):
    """A matrix cut up among nodes at random, group by group instead of column by column.

    Parameters
    ----------
    X : array-like or scipy sparse of shape (rows, columns)
    nodes : int
    labels : array of shape (columns,)
        The group of each column, numbered from 0.
    names : iterable of str, optional
        Names of the columns.
    """

    def __init__(
        self, X: Any, nodes: int, labels: IntArray, names: Iterable[str] | None = None
    ) -> None:
        super().__init__(X, nodes, names=names)
        self._labels = np.asarray(labels, dtype=np.int64)

    def assignment(self, axis: int = 1) -> IntArray:
        """The node of each column's group."""
        if axis != 1:
            return super().assignment(axis)
        count = int(self._labels.max(initial=-1)) + 1
        owners = np.random.default_rng(self._seed).integers(self.nodes, size=count)
        return np.asarray(owners[self._labels], dtype=np.int64)


def one_hot(frame: pandas.DataFrame) -> tuple[pandas.DataFrame, list[list[str]]]:
    """Turn the categorical columns of a DataFrame into dummy variables, a group each.

    Columns of text, categories or booleans become one 0/1 column for each of their values, named
    "column=value"; numeric columns stay as they are, each a group of its own.

    Parameters
    ----------
    frame : DataFrame of shape (rows, columns)

    Returns
    -------
    encoded : DataFrame
    groups : list of lists of str
        The names of the encoded columns that come from each column of `frame`.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"size": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]})
    >>> encoded, groups = one_hot(frame)
    >>> groups
    [['size'], ['colour=blue', 'colour=red']]
    """
    pandas = load_pandas("one_hot")
    parts, groups = [], []
    for name in frame.columns:
        column = frame[name]
        numeric = pandas.api.types.is_numeric_dtype(column)
        if numeric and not pandas.api.types.is_bool_dtype(column):
            part = column.to_frame(str(name))
        else:
            part = pandas.get_dummies(column, prefix=str(name), prefix_sep="=", dtype=float)
        parts.append(part)
        groups.append([str(column) for column in part.columns])
    return pandas.concat(parts, axis=1), groups
