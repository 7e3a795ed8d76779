"""The configuration of a node: where it connects to, which data it has, and what may leave."""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from atomcast._checks import check_count
from atomcast.data.matrices import Matrix
from atomcast.data.preparing import Preparation

#: A column with at most so many different values is one of categories.
CATEGORIES = 20


@dataclass(frozen=True)
class Policy:
    """What a node never does, whatever was approved.

    Parameters
    ----------
    allow, deny : tuples of str
        Patterns of the names of features ("lab_*"); a denied feature, or one that is not allowed,
        is never scored. "ward=A", made of a column "ward", goes by both names.
    atoms_per_run, atoms_total : int
        How many features may leave for one problem, and ever.
    rounds_per_run, proposals_per_round : int
        How many questions are answered for one problem, with how many scores each.
    min_count : int
        Each value of a binary or categorical column that may leave occurs so often at least.
    score_digits : int
        Scores are rounded to so many significant digits; 0: not at all.
    """

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    atoms_per_run: int = 100
    atoms_total: int = 1000
    rounds_per_run: int = 200
    proposals_per_round: int = 100
    min_count: int = 5
    score_digits: int = 0

    def __post_init__(self) -> None:
        for name in ("allow", "deny"):
            patterns = getattr(self, name)
            if isinstance(patterns, str) or not all(isinstance(one, str) for one in patterns):
                raise ValueError(f"{name} must be a list of patterns of names, got {patterns!r}")
            object.__setattr__(self, name, tuple(patterns))
        for part in dataclasses.fields(self):
            if part.name not in ("allow", "deny"):
                check_count(part.name, getattr(self, part.name), "in the policy", minimum=0)
        if 0 < self.score_digits < 3:
            raise ValueError(f"score_digits must be 0 or at least 3, got {self.score_digits}")

    def permits(self, *names: str) -> bool:
        """Whether a feature of these names, its own and that of its table's column, is scored."""

        def match(patterns: Iterable[str]) -> bool:
            return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)

        return match(self.allow) and not match(self.deny)

    def rounded(self, scores: Any, up: bool = False) -> Any:
        """Scores as they may leave; `up` where a bound must remain one."""
        if not self.score_digits:
            return scores
        scores = np.asarray(scores, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            exponent = np.floor(np.log10(np.abs(scores))) - self.score_digits + 1
            unit = 10.0**exponent
            found = (np.ceil if up else np.round)(scores / unit) * unit
        return np.where((scores == 0) | ~np.isfinite(scores), scores, found)

    def too_rare(self, matrix: Matrix) -> list[int]:
        """Columns of categories with a value that occurs less often than `min_count`."""
        rare = []
        for j in range(matrix.shape[1]):
            column = matrix[:, [j]]
            counts = _counts(column.tocsc() if sparse.issparse(column) else column)
            few = max(min(CATEGORIES, matrix.shape[0] // max(self.min_count, 1)), 2)
            if len(counts) <= few and counts.min(initial=self.min_count) < self.min_count:
                rare.append(j)
        return rare

    def too_telling(self, category: Matrix) -> list[int]:
        """Of the 0/1 columns of one category, those without which the others hide rare values.

        Who has all columns but one has that one, too: so the rows that none of them tells of are
        none, or `min_count` at least.
        """
        counts = np.asarray((category != 0).sum(axis=0)).ravel()
        hidden, left_out = category.shape[0] - int(counts.sum()), []
        for j in np.argsort(counts, kind="stable").tolist():
            if counts[j] < self.min_count or 0 < hidden < self.min_count:
                left_out.append(j)
                hidden += int(counts[j])
        return left_out


def _counts(column: Any) -> Any:
    """How often each value of a column occurs."""
    if not sparse.issparse(column):
        return np.unique(np.asarray(column), return_counts=True)[1]
    values, counts = np.unique(column.data, return_counts=True)
    zeros = column.shape[0] - int(counts[values != 0].sum())
    return np.append(counts[values != 0], zeros) if zeros else counts[values != 0]


@dataclass(frozen=True)
class DataSource:
    """A local file under an alias: all that a coordinator can name is the alias.

    Parameters
    ----------
    path : Path
    row_ids : str or None
        The column of row ids.
    order, secret : Path or None
        The order of rows that `atomcast align` has written, and the secret it was made with.
    new : bool
        Whether it is there only to predict for: nothing is fitted to it, and no feature leaves.
    prepare : dict or Preparation, optional
        How to make numbers of a raw table.
    prepared_as : str or None
        The alias of another table: this one is prepared with what was learned from that.
    """

    path: Path
    row_ids: str | None = None
    order: Path | None = None
    secret: Path | None = None
    new: bool = False
    prepare: Any = None
    prepared_as: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.prepare, dict):
            object.__setattr__(self, "prepare", _made(Preparation, self.prepare, "prepare"))


@dataclass(frozen=True)
class NodeConfig:
    """What node.toml says; paths in it are relative to it.

    Parameters
    ----------
    name, coordinator : str
        The names in the certificates of this node and of the coordinator.
    address : str
        "host:port" of the coordinator.
    certificates, state : Path
        Folders: keys and certificates; audit log, offers and approvals.
    data : dict of str to DataSource
    policy : Policy
    proxy : str or None
        "http://host:port" of an HTTP CONNECT proxy.
    """

    name: str
    coordinator: str
    address: str
    certificates: Path
    state: Path
    data: dict[str, DataSource]
    policy: Policy = field(default_factory=Policy)
    proxy: str | None = None


def read_config(path: str | os.PathLike[str]) -> NodeConfig:
    """The configuration of a node, or a ValueError that names what is wrong with it."""
    path = Path(path)
    table = read_toml(path)
    folder = path.absolute().parent
    for name in ("certificates", "state"):
        table[name] = folder / str(table.get(name, name))
    table["data"] = {
        alias: _made(DataSource, _located(source, folder), f"{path}: [data.{alias}]")
        for alias, source in table.get("data", {}).items()
    }
    table["policy"] = _made(Policy, table.get("policy", {}), f"{path}: [policy]")
    config = _made(NodeConfig, table, str(path))
    if not config.data:
        raise ValueError(f'{path} names no data: add [data.ALIAS] with path = "..."')
    for alias, source in config.data.items():
        like = source.prepared_as
        if like is not None and (like not in config.data or source.prepare is not None):
            raise ValueError(
                f"{path}: [data.{alias}] is prepared as {like!r}, which must be the alias of other "
                "data, and then says nothing of how to prepare it"
            )
    return config


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a file of settings."""
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML file: {error}") from error


def _located(source: Any, folder: Path) -> dict[str, Any]:
    """A source whose paths are absolute."""
    if not isinstance(source, dict):
        raise ValueError(f'[data.ALIAS] must be a table with path = "...", got {source!r}')
    paths = ("path", "order", "secret")
    return {k: folder / str(v) if k in paths else v for k, v in source.items()}


def _made(kind: Any, table: Any, where: str) -> Any:
    """An object from a table of settings; an error names what is missing or unknown."""
    names = {part.name: part for part in dataclasses.fields(kind)}
    unknown = [name for name in table if name not in names]
    none = (dataclasses.MISSING, dataclasses.MISSING)
    missing = [
        name
        for name, part in names.items()
        if (part.default, part.default_factory) == none and name not in table
    ]
    if unknown or missing:
        wrong = f"does not know {unknown[0]!r}" if unknown else f"lacks {missing[0]!r}"
        raise ValueError(f"{where} {wrong}: it may have {', '.join(names)}")
    try:
        return kind(**table)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
