"""`atomcast fit --config run.toml`: a fit in a file, and how parties prepare their tables."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atomcast.data.preparing import Preparation


def run_from(path: Path, context: Any) -> None:
    """Run the fit that a file describes, in the folder of the file, by which its paths go.

    Parameters
    ----------
    path : Path
        A TOML file with `estimator`, `parts` and the long options of its command as keys, and
        perhaps a table `prepare`.
    context : click.Context
        Of `atomcast fit`, whose commands are the estimators.
    """
    from atomcast.federated.policy import read_toml

    settings = read_toml(path)
    name, parts = settings.pop("estimator", None), settings.pop("parts", [])
    known = context.command.list_commands(context)
    if name not in known:
        raise ValueError(f"{path}: estimator must be one of {', '.join(known)}, got {name!r}")
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError(f'{path}: parts must be a list of files, such as ["a.csv"], got {parts!r}')
    command = context.command.get_command(context, name)
    if isinstance(settings.get("prepare"), dict):
        settings["prepare"] = path.name
    arguments = [word for item in settings.items() for word in _words(command, *item, path)]
    with contextlib.chdir(path.parent):
        command.invoke(command.make_context(name, [*arguments, "--", *parts], parent=context))


def _words(command: Any, key: str, value: Any, path: Path) -> list[str]:
    """What one setting is on the command line."""
    option = f"--{key.replace('_', '-')}"
    found = [p for p in command.params if option in (*p.opts, *p.secondary_opts)]
    if not found:
        known = sorted(word[2:] for p in command.params for word in p.opts if word[:2] == "--")
        near = get_close_matches(option[2:], known, 1)
        raise ValueError(
            f"{path}: {key} is no setting of {command.name}"
            f"{f' (did you mean {near[0]}?)' if near else ''}, which has {', '.join(known)}; "
            "parts, and a table prepare"
        )
    if found[0].is_flag:
        if not isinstance(value, bool):
            raise ValueError(f"{path}: {key} must be true or false, got {value!r}")
        opposites = found[0].secondary_opts if option in found[0].opts else found[0].opts
        return [option] if value else list(opposites[:1])
    values = value if isinstance(value, list) else [value]
    return [word for one in values for word in (option, str(one))]


def read_preparation(path: Path, parties: Sequence[str]) -> dict[str, Preparation]:
    """How each party prepares its table: the table `prepare` of a file, and in it, one by party."""
    from atomcast.data.preparing import Preparation
    from atomcast.federated.policy import read_toml

    table = read_toml(path).get("prepare")
    if not isinstance(table, dict):
        raise ValueError(
            f"{path} has no table [prepare]: put that line above what says how to prepare tables, "
            'for example impute = "median"'
        )
    own = {key: value for key, value in table.items() if isinstance(value, dict)}
    for_all = {key: value for key, value in table.items() if key not in own}
    unknown = [name for name in own if name not in parties]
    if unknown:
        raise ValueError(
            f"{path}: [prepare.{unknown[0]}] is for none of the parties {', '.join(parties)}"
        )
    try:
        return {name: Preparation(**{**for_all, **own.get(name, {})}) for name in parties}
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: [prepare] knows impute, one_hot, scale and drop: {error}"
        ) from None
