"""The package as a whole: cheap to import, complete in what it exports."""

import ast
import doctest
import subprocess
import sys
from pathlib import Path

import atomcast.data
from atomcast.data import _split
from patience import PATIENCE

HEAVY = ["pandas", "pyarrow", "pooch", "numba", "sklearn"]

# The package above is replaced by an empty one, so that only our own imports are looked at.
SCRIPT = """
import sys, types
atomcast = types.ModuleType("atomcast")
atomcast.__path__ = [sys.argv[1]]
sys.modules["atomcast"] = atomcast
import atomcast.data
print(*(name for name in sys.argv[2:] if name in sys.modules))
"""


def test_import_is_light():
    folder = Path(atomcast.data.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), *HEAVY],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert done.stdout.split() == []


def test_everything_exported_exists():
    assert sorted(atomcast.data.__all__) == atomcast.data.__all__
    for name in atomcast.data.__all__:
        assert getattr(atomcast.data, name).__doc__


def test_modules_need_each_other_one_way():
    for path in Path(atomcast.data.__file__).parent.glob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                late = [
                    node.module for node in ast.walk(function) if isinstance(node, ast.ImportFrom)
                ]
                assert not [name for name in late if name and name.startswith("atomcast")], path


def test_docstring_examples():
    result = doctest.testmod(_split)
    assert result.attempted > 0
    assert result.failed == 0
