"""Counts of work that must not grow unseen: rounds, atoms, values, products, kernel columns.

    python benchmarks/counts.py           compare with what is stored in counts.json
    python benchmarks/counts.py --write   store what is counted now

No clock is read, so that it means the same on every machine; rounding may differ between machines,
which is why a count may be a tenth, and two, above the stored one. Passes over groups differ by
half as many again between processors: stored is the largest count that was seen.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kinds import gene_like, random_groups, small, tall, text_like
from sklearn.datasets import make_classification

from atomcast import GroupLasso, KernelSVC, Lasso, SparseLogisticRegression
from atomcast.data import make_sparse_regression
from atomcast.known.columns import DenseColumns, SparseColumns
from atomcast.steps.inner.coordinate_descent import CoordinateDescent
from atomcast.steps.inner.group_solver import GroupDescent

STORED = Path(__file__).with_name("counts.json")
NODES = 4
#: What is counted while a model is fitted: passes over the known columns, by where they begin.
PASSES = [
    (DenseColumns, "scores"),
    (DenseColumns, "combine"),
    (SparseColumns, "scores"),
    (SparseColumns, "combine"),
    (CoordinateDescent, "sweep"),
    (CoordinateDescent, "_solve_face"),
    (GroupDescent, "sweep"),
    (GroupDescent, "_solve_face"),
]


def cases() -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield (name, model, X, y) of cheap problems of several kinds."""
    for name, made, beta in (
        ("small", small(1), 8.0),
        ("genes", gene_like(1, n=2_000), 4.0),
        ("tall", tall(1, 500, 800), 150.0),
        ("text", text_like(1, 1_000, 4_000, 25_000), 20.0),
        ("synthetic", make_sparse_regression(1_000, 10_000, 1e-2, 1e-2)[:2], 20.0),
    ):
        yield f"Lasso, {name}", Lasso(beta, cluster=NODES), *made
    X, y = gene_like(2, n=1_000)
    yield "logistic, genes", SparseLogisticRegression(2.0, cluster=NODES), X, y > 0.0
    groups = random_groups(2, X.shape[1], 100)
    yield "GroupLasso, genes", GroupLasso(20.0, groups=groups, cluster=NODES), X, y
    yield (
        "kernel SVM",
        KernelSVC(gamma=0.1, cluster=NODES),
        *make_classification(400, random_state=1),
    )


@contextmanager
def counted(passes: Counter[str]) -> Iterator[None]:
    """Within, every pass over known columns is counted."""

    def counting(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            passes["passes"] += 1
            return method(*arguments)

        return call

    before = [(kind, name, getattr(kind, name)) for kind, name in PASSES]
    for kind, name, method in before:
        setattr(kind, name, counting(method))
    try:
        yield
    finally:
        for kind, name, method in before:
            setattr(kind, name, method)


def counts() -> dict[str, dict[str, int]]:
    """What each case takes: rounds, atoms, values and bytes sent, products, passes over columns."""
    found = {}
    for name, model, X, y in cases():
        passes: Counter[str] = Counter(passes=0)
        with counted(passes):
            result = model.fit(X, y).result_
        assert result.status == "optimal", f"{name} ended with {result.status}"
        ledger = result.ledger
        found[name] = {
            "rounds": result.rounds,
            "atoms": ledger.atoms_sent,
            "values": ledger.values,
            "bytes": ledger.bytes,
            "products": (result.rounds + 1) * result.n,
            **passes,
        }
    return found


def larger(found: dict[str, dict[str, int]], stored: dict[str, dict[str, int]]) -> list[str]:
    """What has grown, or is not stored, in words."""
    if found.keys() != stored.keys():
        return [f"stored are {sorted(stored)}, counted were {sorted(found)}"]
    return [
        f"{name}: {now:,} {what}, stored are {stored[name][what]:,}"
        for name, case in found.items()
        for what, now in case.items()
        if now > 1.1 * stored[name][what] + 2
    ]


def main() -> None:
    """Compare, or store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    found = counts()
    if parser.parse_args().write:
        STORED.write_text(json.dumps(found, indent=1) + "\n")
        return
    grown = larger(found, json.loads(STORED.read_text()))
    sys.exit("\n".join(["more work than before:", *grown]) if grown else None)


if __name__ == "__main__":
    main()
