"""Collecting the tests is quick: each worker does it, before it runs a single one."""

import ast
import os
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
#: What takes long to import and is needed by few tests: they import it themselves.
SLOW = {
    "celer",
    "cvxpy",
    "matplotlib",
    "mpi4py",
    "numba",
    "ray",
    "skglm",
    "atomcast.cluster.ray.asynchronous_session",
    "atomcast.cluster.ray.ray_session",
}


def imported_when_collected(path):
    """The modules that a file names in imports outside of functions, with the packages around."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            names = [statement.module or ""]
        else:
            continue
        for name in names:
            yield from (name, name.partition(".")[0])


def test_slow_modules_are_imported_by_the_tests_that_need_them():
    found = {
        str(path.relative_to(FOLDER)): names
        for path in FOLDER.rglob("*.py")
        if (names := SLOW.intersection(imported_when_collected(path)))
    }
    assert not found, "import these in the functions that use them"


def test_tests_are_in_the_rooms_of_what_they_test():
    rooms = {path.name for path in (FOLDER.parent / "src" / "atomcast").iterdir() if path.is_dir()}
    folders = {path.name for path in FOLDER.iterdir() if any(path.rglob("test_*.py"))}
    assert folders <= rooms


def test_no_two_files_or_classes_of_the_package_share_a_name():
    """Whoever says a name means one thing."""
    files = [p for p in (FOLDER.parent / "src").rglob("*.py") if p.name != "__init__.py"]
    classes = [
        node.name
        for path in files
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    for names in ([path.name for path in files], classes):
        assert [name for name, count in Counter(names).items() if count > 1] == []


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="there is one worker")
@pytest.mark.xdist_group("a group")
def test_workers_are_told_of_groups(request):
    """Else tests that start processes run side by side, and both workers start all of them."""
    assert request.node.nodeid.endswith("@a group")
