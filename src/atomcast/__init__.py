"""Fit sparse models whose atoms are spread over a network, sending only the atoms they need."""

from __future__ import annotations

import ast
import importlib
import logging
from importlib.metadata import version
from pathlib import Path
from typing import Any

__version__ = version("atomcast")

# Silent unless the program that uses the library listens to the logger "atomcast".
logging.getLogger(__name__).addHandler(logging.NullHandler())

# The stub says where each name lives, for type checkers and here. Names are imported when they
# are used: `import atomcast` stays light.
_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_HOMES = {
    alias.name: str(line.module)
    for line in _STUB.body
    if isinstance(line, ast.ImportFrom)
    for alias in line.names
}
__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'atomcast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
