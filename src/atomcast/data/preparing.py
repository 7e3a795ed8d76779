"""Tables as they are: missing values, categories and scales, learned by the party that has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_choice
from atomcast.data.alignment import shown
from atomcast.data.prepared import Column, Prepared, checked_labels, texts_in
from atomcast.data.tables import numeric_column, refuse_ids

#: What stands in for missing numbers, from those that are there.
FILLS: dict[str, Callable[[NDArray[np.float64]], Any]] = {
    "mean": np.mean,
    "median": np.median,
    "most-frequent": lambda known: min(Counter(known.tolist()).items(), key=_rarity)[0],
}
#: A column of texts may have so many different ones, or else one for every second row.
FEW = 20


def _rarity(counted: tuple[Any, int]) -> tuple[int, Any]:
    return -counted[1], counted[0]  # of the most frequent values, the smallest


@dataclass(frozen=True)
class Preparation:
    """What a party does with its table before the columns are atoms.

    Each party does it alone, with what it learns from its own rows.

    Parameters
    ----------
    impute : {"mean", "median", "most-frequent"}, optional
        What stands in for missing numbers; in columns of texts, "most-frequent" fills in the most
        frequent one. By default missing values stay, and are an error for most models.
    one_hot : bool or sequence of str, default=True
        Turn columns of texts into one 0/1 column for each of their values, called "column=value";
        a value that is missing, or that was not there in the fit, is 0 in all of them. Names of
        columns: these, whether they hold texts or numbers, and no others.
    scale : {"standard"}, optional
        Give columns of numbers a mean of zero and a variance of one; 0/1 columns stay.
    drop : sequence of str, default=()
        Columns to leave out.

    Examples
    --------
    >>> from atomcast import Preparation, Shards
    >>> tidy = Preparation(impute="median", scale="standard")
    >>> Shards.files(["north.csv", "south.csv"], prepare=tidy)
    Shards.files(['north.csv', 'south.csv'])
    """

    impute: str | None = None
    one_hot: bool | Sequence[str] = True
    scale: str | None = None
    drop: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.impute is not None:
            check_choice("impute", self.impute, tuple(FILLS))
        if self.scale is not None:
            check_choice("scale", self.scale, ("standard",))
        listed = {"drop": self.drop, "one_hot": self._listed}
        for name, given in listed.items():
            texts = isinstance(given, Sequence) and all(isinstance(one, str) for one in given)
            if isinstance(given, str) or not texts:
                raise ValueError(
                    f'{name} must be a list of names of columns, such as ["ward"], got {given!r}'
                )

    @property
    def _listed(self) -> Sequence[str]:
        return () if isinstance(self.one_hot, bool) else self.one_hot

    def learned(self, table: Any, source: str) -> Prepared:
        """What the columns of a table say; `source` is for messages."""
        labels = checked_labels(table, [*self.drop, *self._listed], source)
        refuse_ids(table, source=source, ignored=self.drop)
        kept = {name: label for name, label in labels.items() if name not in self.drop}
        columns = (self._column(name, table[label], source) for name, label in kept.items())
        return Prepared(tuple(columns))

    def _column(self, name: str, column: Any, source: str) -> Column:
        where = f"{source}: column {name!r}"
        if name in self._listed or (self.one_hot is True and not _holds_numbers(column)):
            return self._category(name, texts_in(column), where)
        return self._numbers(name, numeric_column(column, name, source), where)

    def _category(self, name: str, texts: list[str | None], where: str) -> Column:
        counts = Counter(text for text in texts if text is not None)
        if len(counts) > max(FEW, len(texts) // 2):
            raise ValueError(
                f"{where} has {len(counts):,} different values in {len(texts):,} rows "
                f"({shown(list(counts))}), which are no categories: leave it out by "
                f"drop=[{name!r}], or name it as row_ids if it tells the rows"
            )
        fill = min(counts.items(), key=_rarity)[0] if counts else None
        return Column(name, tuple(sorted(counts)), fill if self.impute == "most-frequent" else None)

    def _numbers(self, name: str, values: NDArray[Any], where: str) -> Column:
        known = values[~np.isnan(values)].astype(np.float64)
        if not len(known) or not np.isfinite(known).all():
            what = "infinity" if len(known) else "no value at all"
            raise ValueError(f"{where} holds {what}: correct it, or leave it out (drop=[{name!r}])")
        fill = None if self.impute is None else float(FILLS[self.impute](known))
        if self.scale is None:
            return Column(name, None, fill)
        if fill is not None:
            known = np.append(known, np.full(len(values) - len(known), fill))
        return Column(name, None, fill, float(known.mean()), float(known.std()) or 1.0)


def _holds_numbers(column: Any) -> bool:
    # pandas says of its own types what they are; categories that are numbers are categories.
    kind = getattr(getattr(column, "dtype", None), "kind", None)
    return (kind or np.asarray(column).dtype.kind) in "biuf"


#: How parties prepare their tables: all alike, some by name, or one after the other.
Preparing = Preparation | Mapping[str, Preparation] | Sequence[Preparation | Prepared]


def for_each_party(
    prepare: Preparing | None, parties: Sequence[str]
) -> list[Preparation | Prepared] | None:
    """What `prepare` says for each party, or ValueError; None if there is nothing to do."""
    if prepare is None:
        return None
    each: list[Any] = [prepare] * len(parties)
    if isinstance(prepare, Mapping):
        unknown = [name for name in prepare if name not in parties]
        if unknown:
            raise ValueError(
                f"prepare names {shown(unknown)}, but the parties are {shown(list(parties))}"
            )
        each = [prepare.get(name, Preparation()) for name in parties]
    elif isinstance(prepare, Sequence):
        each = list(prepare)
    if not all(isinstance(one, Preparation | Prepared) for one in each):
        raise ValueError(
            "prepare must be a Preparation, a dict of them by the names of parties, or the "
            f"preparation_ of a model, got {prepare!r}"
        )
    if len(each) != len(parties):
        raise ValueError(
            f"prepare is for {len(each)} parties, but there are {len(parties)}: give as many files "
            "as in the fit, in the same order"
        )
    return each
