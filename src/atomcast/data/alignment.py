"""Checks that shards fit together: as many rows, the same rows in the same order, unique names."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def row_digest(row_ids: Iterable[Any]) -> str:
    """Return a hash of row ids and their order, short enough to send and compare.

    Parameters
    ----------
    row_ids : sequence of int or str, of length (rows,)
        Integers give the same digest whatever their type; so do floats that are whole numbers,
        because a CSV reader may make floats of integers.

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    ids = _plain_ids(row_ids)
    if ids.dtype.kind == "i":
        content = b"int:" + np.ascontiguousarray(ids, dtype="<i8").tobytes()
    else:
        # Lengths stand before the texts, so that no text can imitate a border between two.
        content = b"str:" + "".join(f"{len(text)}:{text}" for text in ids.tolist()).encode()
    return hashlib.sha256(content).hexdigest()[:32]


def check_same_length(lengths: Sequence[int], sources: Sequence[str], *, axis: int) -> None:
    """Raise ValueError, naming the shard, unless all atoms have the same length.

    Parameters
    ----------
    lengths : sequence of int, one per shard
        Rows of each shard if axis=1, columns if axis=0.
    sources : sequence of str, one per shard
    axis : {0, 1}
    """
    word = "rows" if axis == 1 else "columns"
    for length, source in zip(lengths, sources, strict=True):
        if length != lengths[0]:
            advice = (
                "atoms are columns here, so every shard must describe the same examples, "
                'in the same order: add or drop rows so that they match, or let align="inner" '
                "(--align inner) do so by their row ids"
                if axis == 1
                else "atoms are rows here, so every shard must have the same features: add the "
                "missing columns (for svmlight files, pass n_features)"
            )
            raise ValueError(
                f"{source} has {length} {word}, but {sources[0]} has {lengths[0]}: {advice}"
            )


def check_same_rows(digests: Sequence[str | None], sources: Sequence[str]) -> None:
    """Raise ValueError, naming the shard, unless all row-id digests that were given agree."""
    known = [(digest, source) for digest, source in zip(digests, sources, strict=True) if digest]
    for digest, source in known:
        if digest != known[0][0]:
            raise ValueError(misaligned(source, known[0][1], "in value or in order"))


def misaligned(source: str, reference: str, difference: str) -> str:
    """Return the message for two shards whose row ids do not agree."""
    return (
        f"{source}: its row ids differ from those of {reference} ({difference}): every shard "
        "must hold the same examples in the same order; sort all parts by their row ids and "
        'drop the rows that are not in all of them, or let align="inner" (--align inner) do so'
    )


def explain_difference(ids: Iterable[Any], reference: Iterable[Any]) -> str:
    """Say in a few words how two lists of row ids differ."""
    mine, theirs = _plain_ids(ids), _plain_ids(reference)
    if len(mine) != len(theirs):
        return f"{len(mine)} ids against {len(theirs)}"
    if mine.dtype.kind != theirs.dtype.kind:
        return "numbers against texts"
    if np.array_equal(np.sort(mine), np.sort(theirs)):
        return "the same ids in another order"
    row = int(np.flatnonzero(mine != theirs)[0])
    return f"first in row {row}: {mine[row].item()!r} against {theirs[row].item()!r}"


def checked_ids(row_ids: Iterable[Any], source: str) -> NDArray[Any]:
    """Return row ids as int64 or texts, refusing rows without an id, and ids of several rows."""
    given = np.asarray(row_ids)
    if given.dtype.kind in "fO":
        missing = [row for row, value in enumerate(given.tolist()) if is_missing(value)]
        if missing:
            raise ValueError(
                f"{source}: row {missing[0]} has no row id ({len(missing)} row(s) in all): every "
                "row needs one; fill them in or drop these rows"
            )
    ids = _plain_ids(given)
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < len(ids):
        raise ValueError(
            f"{source}: the row id {shown(values[counts > 1])} occurs more than once: an id must "
            "tell a single row; drop or merge the repeated rows, or name another column of ids"
        )
    return ids


def is_missing(value: Any) -> bool:
    """Tell whether a value of a table is none: None, NaN, or what pandas has for them."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def shown(ids: NDArray[Any] | list[str]) -> str:
    """Return the first few of some ids or names as a text."""
    first = ", ".join(map(repr, np.asarray(ids[:5], dtype=object)))
    return first + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


def check_any(atoms: int, axis: int) -> None:
    """Raise ValueError if all nodes together hold no atoms."""
    if not atoms:
        what = "features: it needs a column" if axis == 1 else "examples: it needs a row"
        raise ValueError(f"X has no {what}, at least")


def check_unique(names: Sequence[str], *, what: str) -> None:
    """Raise ValueError, naming them, if some names occur more than once."""
    if len(set(names)) == len(names):
        return
    repeated = [name for name, count in Counter(names).items() if count > 1]
    raise ValueError(
        f"{what} {shown(repeated)} occurs more than once: names must be unique, "
        "so that a weight can be told by its name; rename or drop the repeated columns"
    )


def _plain_ids(row_ids: Iterable[Any]) -> NDArray[Any]:
    """Return row ids as int64 where they are whole numbers, else as texts."""
    ids = np.asarray(row_ids if isinstance(row_ids, np.ndarray | Sequence) else list(row_ids))
    if ids.ndim != 1:
        raise ValueError(f"row_ids has shape {ids.shape}, but one id per row, (rows,), is needed")
    if ids.dtype.kind == "f" and np.all(np.isfinite(ids)) and np.all(ids == np.floor(ids)):
        ids = ids.astype(np.int64)
    if ids.dtype.kind in "iu":
        return ids.astype(np.int64)
    return np.array([str(value) for value in ids.tolist()], dtype=np.str_)


def check_unique_across(known: Sequence[tuple[tuple[str, ...], str]]) -> None:
    """Raise ValueError, naming both shards, if a column name occurs twice."""
    holder: dict[str, str] = {}
    for names, source in known:
        check_unique(names, what=f"{source}: the column name")
        for name in names:
            if name in holder:
                raise ValueError(
                    f"the column name {name!r} occurs in {holder[name]} and in {source}: names "
                    "must be unique over all shards; prefix=True (--prefix) puts the party's name "
                    f"before them, or rename one of the two columns or drop it; if {name!r} tells "
                    f"the rows, say row_ids={name!r} (--row-ids {name})"
                )
            holder[name] = source
