"""The rows of cross-validation: folds that were approved, none of which shows a few rows alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomcast.federated.kinds import Floats, Ids
from atomcast.messages.atom import Atom

#: The fold that is none: all rows.
ALL = -1


def fold_labels(folds: Sequence[tuple[Any, Any]], rows: int) -> Ids:
    """The fold that each row is held out of, shape (rows,); ValueError if it is not just one.

    With rows that are held out by several folds, the difference of two folds could be a single row.
    """
    labels = np.full(rows, ALL, dtype=np.int64)
    for k, (train, test) in enumerate(folds):
        rest = np.setdiff1d(np.arange(rows), test)
        if np.any(labels[test] != ALL) or not np.array_equal(rest, train):
            break
        labels[test] = k
    else:
        if np.all(labels != ALL):
            return labels
    raise ValueError(
        "between organisations, cross-validation needs folds of which each row is held out by just "
        "one, and is trained with by all others, in order: give cv=5 or KFold(...)"
    )


def check_labels(folds: Ids, rows: int) -> None:
    """Raise ValueError unless these are the folds of all rows, numbered through, or none."""
    numbers = np.unique(folds)
    if len(folds) not in (0, rows) or not np.array_equal(numbers, np.arange(len(numbers))):
        raise ValueError("folds must be numbered 0, 1, ..., one for each row")


def training_rows(folds: Ids, fold: int) -> NDArray[np.int64] | None:
    """The rows of all other folds; None: all rows. ValueError if there is no such fold."""
    if fold == ALL:
        return None
    if not 0 <= fold <= folds.max(initial=ALL):
        raise ValueError(f"there is no fold {fold}")
    return np.flatnonzero(folds != fold)


def of_rows(atom: Atom, rows: NDArray[np.int64] | None) -> Atom:
    """A feature at some rows, rising, alone."""
    if rows is None:
        return atom
    if atom.indices is None:
        return replace(atom, d=len(rows), values=np.ascontiguousarray(atom.values[rows]))
    kept = np.isin(atom.indices, rows)
    places = np.searchsorted(rows, atom.indices[kept])
    return replace(atom, d=len(rows), values=atom.values[kept], indices=places)


def fewest_together(partitions: Sequence[Ids]) -> int:
    """The fewest rows that several partitions tell from all others."""
    cells = np.unique(np.stack(partitions), axis=1, return_counts=True)
    return int(cells[1].min())


def summary(numbers: NDArray[Any], called: str, *more: NDArray[Any]) -> str:
    """What people approve of a partition: how many parts, and its SHA-256; "" if there is none."""
    if not len(numbers):
        return ""
    content = b"".join(np.ascontiguousarray(one).tobytes() for one in (numbers, *more))
    return f"{int(numbers.max()) + 1} {called}, SHA-256 {hashlib.sha256(content).hexdigest()}"


def effective_rows(target: ArrayLike) -> float:
    """How many rows a target is spread over: 1 for a single spike, all for equal deviations.

    NaN for numbers that are too large for that.
    """
    values = np.asarray(target, dtype=np.float64)
    centred = values - float(values.mean())
    largest = float(np.max(np.abs(centred), initial=0.0))
    if largest == 0.0:
        return float(centred.size)
    squares = (centred / largest) ** 2
    return float(squares.sum() ** 2 / (squares**2).sum())


def fewest_rows(target: Floats, folds: Ids, classes: bool) -> float:
    """The fewest rows that scores against a target, or their differences over folds, tell of.

    Parameters
    ----------
    target : array of shape (rows,)
    folds : array of shape (rows,)
        The fold of each row; empty where there are none.
    classes : bool
        Whether the target names classes, as one of two values always does.
    """
    parts, classes = [target], classes or len(np.unique(target)) == 2
    for fold in np.unique(folds):
        parts += [target[folds == fold], target[folds != fold]]
    if classes:
        return float(min(np.unique(part, return_counts=True)[1].min() for part in parts))
    return min(effective_rows(part) for part in parts)
