"""What the nodes are called in accounts and pictures: names that users give, or those of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

#: A star's coordinator goes by this name where nodes have names, so that no node can.
COORDINATOR_NAME = "coordinator"


def checked_party_names(names: Iterable[str], nodes: int) -> tuple[str, ...]:
    """Return names, one for each node, or raise an error that says what is wrong with them."""
    if isinstance(names, str):
        raise TypeError(
            f"party_names={names!r} is one text, but one name per node is needed: a list"
        )
    result = tuple(names)
    if len(result) != nodes:
        raise ValueError(f"{len(result)} party names for {nodes} nodes: give one name each")
    for name in result:
        if not isinstance(name, str) or not name.strip() or name == COORDINATOR_NAME:
            raise ValueError(
                f"the party name {name!r} is not accepted: give a text that is neither empty nor "
                f'"{COORDINATOR_NAME}", which is the one in the middle'
            )
    if len(set(result)) < nodes:
        twice = next(name for name in result if result.count(name) > 1)
        raise ValueError(f"the party name {twice!r} occurs twice: give every node its own")
    return result


def checked_prefixes(prefix: bool | Sequence[str], parties: Sequence[str]) -> list[str] | None:
    """Return what to put before the names of each party's columns, or None."""
    if prefix is False:
        return None
    if isinstance(prefix, str):
        raise TypeError(
            f"prefix={prefix!r} is one text: use True, or a list with one for each file"
        )
    prefixes = list(parties) if prefix is True else [str(name) for name in prefix]
    if len(prefixes) != len(parties):
        raise ValueError(
            f"prefix has {len(prefixes)} entries, but there are {len(parties)} files: give one each"
        )
    if len(set(prefixes)) < len(prefixes):
        raise ValueError(
            f"prefix={prefixes} would give columns of several files the same name: give each "
            "file its own"
        )
    return prefixes


def names_of_files(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return the stem of each file, or more of its path where stems are not enough."""
    ways: tuple[Callable[[Path], str], ...] = (
        _stem,
        lambda path: path.name,
        lambda path: f"{path.parent.name}/{_stem(path)}",
        str,
    )
    for way in ways:
        names = tuple(way(path) for path in paths)
        if len(set(names)) == len(names) and COORDINATOR_NAME not in names:
            return names
    return tuple(f"{_stem(path)} {i}" for i, path in enumerate(paths))


def _stem(path: Path) -> str:
    """The name of a file without its suffix, or suffixes: "north" for "north.csv.gz"."""
    return (path.with_suffix("") if path.suffix == ".gz" else path).stem
