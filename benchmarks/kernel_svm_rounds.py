"""Rounds, atoms, values and accuracy of the kernel SVM by step; `kernel_svm.py rounds` runs it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from atomcast import KernelSVC, LocalCluster, Solver, TimeLimit
from atomcast.data import load_adult
from atomcast.known.kernels.kernel_matrix import kernel_block
from atomcast.loop.trace import Trace

#: What is run: its name for --steps and in the table, the step, and whether an atom is sent each
#: time it wins.
RUNS = [
    ("paper", "classic, paper's protocol", "classic", True),
    ("classic", "classic, none sent twice", "classic", False),
    ("pairwise", "pairwise", "pairwise", False),
    ("blended-pairwise", "blended-pairwise", "blended-pairwise", False),
    ("corrective", "corrective", "corrective", False),
]
CACHING, OURS = "classic, none sent twice", "corrective"
#: Up to so many rows, the optimum is found to a gap of 1e-7, beyond to 1e-4.
FEW_ROWS = 5_000


@dataclass
class Reference:
    """The optimum, as nearly as it was found, and gamma."""

    optimum: float
    gamma: float


def targets(trace: Trace, optimum: float) -> dict[str, NDArray[np.bool_]]:
    """By target, the rounds in which it is reached."""
    ways_off, relative = trace.objective / optimum - 1, trace.gap / trace.objective
    reached = {f"suboptimal {level:g}": ways_off <= level for level in (0.1, 0.01)}
    return reached | {f"gap {level:g}": relative <= level for level in (1e-1, 1e-2, 1e-3, 1e-4)}


def fitted(args: Any, X: Any, y: Any, gamma: Any, **how: Any) -> KernelSVC:
    """A machine fitted within the rounds and the seconds that a run may take."""
    cluster = LocalCluster(args.nodes, resend=how.pop("resend", False))
    watchers = [TimeLimit(args.seconds), *how.pop("watchers", [])]
    solver = Solver(callbacks=watchers, **{"max_rounds": args.max_rounds, "tol": 1e-4, **how})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
        return KernelSVC(C=args.C, gamma=gamma, cluster=cluster, solver=solver).fit(X, y)


def rounds(args: Any) -> None:
    """Rounds, atoms and values to given suboptimality and gap, by step and protocol."""
    data = load_adult()
    rows = args.rows or data.X.shape[0]
    X, y = data.X[:rows], data.y[:rows]
    exact = KernelSVC(C=args.C, solver=Solver(tol=1e-7 if rows <= FEW_ROWS else 1e-4)).fit(X, y)
    known = Reference(exact.result_.objective, exact.gamma_)
    print(
        f"a9a, first {X.shape[0]:,} rows, C = {args.C:g}, {args.nodes} nodes in a star; optimum "
        f"{known.optimum:.8g} (gap {exact.result_.relative_gap:.0e}), {len(exact.support_):,} "
        f"support vectors, test accuracy {exact.score(data.X_test, data.y_test):.4f}; a run has "
        f"{args.max_rounds:,} rounds and {args.seconds:g} s"
    )
    header = f"{'rounds':>8s}{'atoms':>8s}{'values':>14s}{'seconds':>9s}"
    print(f"{'':27s}{'target':>16s}{header}")
    traces = {}
    for word, name, step, resend in RUNS:
        if word in args.steps.split(","):
            model = fitted(args, X, y, known.gamma, step=step, resend=resend)
            traces[name] = model.result_.trace
            print_run(name, model, known, model.score(data.X_test, data.y_test))
    if CACHING in traces and OURS in traces:
        print_comparison(traces[OURS], traces[CACHING], known.optimum)


def print_run(name: str, model: KernelSVC, known: Reference, accuracy: float) -> None:
    """A line a target, and one for where the run ended."""
    trace, result = model.result_.trace, model.result_
    for target, reached in targets(trace, known.optimum).items():
        figures = f"{'not reached':>39s}"
        if reached.any():
            k = int(reached.argmax())
            figures = (
                f"{trace.round[k]:8d}{trace.atoms[k]:8d}{trace.values[k]:14,d}"
                f"{trace.seconds[k]:9.2f}"
            )
        print(f"{name:27s}{target:>16s}{figures}", flush=True)
    print(
        f"{name:27s}{'end':>16s}{result.rounds:8d}{trace.atoms[-1]:8d}"
        f"{result.ledger.values:14,d}{trace.seconds[-1]:9.2f}  {result.status}, "
        f"suboptimal {trace.objective[-1] / known.optimum - 1:.1e}, accuracy {accuracy:.4f}",
        flush=True,
    )


def print_comparison(ours: Trace, caching: Trace, optimum: float) -> None:
    """At which targets the corrective step sent fewer values than classic with caching."""
    verdicts: dict[str, list[str]] = {"fewer": [], "more": [], "unknown": []}
    theirs = targets(caching, optimum)
    for target, reached in targets(ours, optimum).items():
        if not reached.any():
            verdicts["unknown"].append(f"{target} (corrective did not get there)")
            continue
        values = int(ours.values[int(reached.argmax())])
        if theirs[target].any():
            other = int(caching.values[int(theirs[target].argmax())])
            verdict, remark = ("fewer" if values < other else "more"), f"{values / other:.2f} x"
        else:  # more values than it had sent by then would not have been enough either
            other = int(caching.values[-1])
            verdict = "fewer" if values < other else "unknown"
            remark = f"{values:,} values, classic not there after {other:,}"
        verdicts[verdict].append(f"{target} ({remark})")
    end = float(caching.objective[-1] / optimum - 1)
    there = np.flatnonzero(ours.objective / optimum - 1 <= end)
    if len(there):
        print(
            f"where classic with caching ended (suboptimal {end:.2g} after {caching.values[-1]:,} "
            f"values), corrective had sent {ours.values[there[0]]:,}"
        )
    for verdict, those in verdicts.items():
        text = "not known whether fewer" if verdict == "unknown" else verdict
        print(f"corrective sent {text} values than classic with caching at: {_listed(those)}")


def _listed(items: list[str]) -> str:
    return "; ".join(items) if items else "none"


class Weights:
    """Remember the weights of every round."""

    def __init__(self) -> None:
        self.weights: list[NDArray[np.float64]] = []
        self.active: Any = None

    def __call__(self, state: Any) -> None:
        self.active = state.replica.active
        self.weights.append(self.active.weights.copy())

    def accuracies(self, X: Any, y: NDArray[Any]) -> NDArray[np.float64]:
        """The share of examples that the weights of each round predict rightly."""
        columns = np.zeros((len(self.active), len(self.weights)))
        for k, weights in enumerate(self.weights):
            columns[: len(weights), k] = weights
        columns *= np.where(self.active.labels == 1, 1.0, -1.0)[:, None]
        right = np.zeros(len(self.weights))
        for start in range(0, X.shape[0], 1024):
            rows = slice(start, start + 1024)
            block = kernel_block(self.active.kernel, X[rows], self.active.points, np.float32)
            decisions = block @ columns + columns.sum(axis=0)
            right += ((decisions > 0) == (y[rows] > 0)[:, None]).sum(axis=0)
        return right / X.shape[0]


def accuracy(args: Any) -> None:
    """Test accuracy by round: the worst violators against violators drawn at random."""
    data = load_adult()
    rows = args.rows or data.X.shape[0]
    X, y = data.X[:rows], data.y[:rows]
    exact = KernelSVC(C=args.C, solver=Solver(tol=1e-4)).fit(X, y)
    best, runs = exact.result_.objective, {}
    for selection in ("exact", "random-violators"):
        kept = Weights()
        model = fitted(args, X, y, exact.gamma_, selection=selection, watchers=[kept])
        runs[selection] = model.result_.trace, kept.accuracies(data.X_test, data.y_test)
    print(
        f"a9a, first {X.shape[0]:,} rows, C = {args.C:g}, {args.nodes} nodes, corrective; at the "
        f"optimum test accuracy {exact.score(data.X_test, data.y_test):.4f}\n"
        + " " * 6
        + "".join(f"{name:>36s}" for name in runs)
        + "\nround"
        + " "
        + f"{'atoms':>12s}{'suboptimal':>13s}{'accuracy':>11s}" * 2
    )
    longest = max(len(trace.round) for trace, _ in runs.values())
    for k in range(1, longest):
        line = f"{k:5d} "
        for trace, right in runs.values():
            if k < len(right):
                off = trace.objective[k] / best - 1
                line += f"{trace.atoms[k]:12d}{off:13.3g}{right[k]:11.4f}"
            else:
                line += " " * 36
        print(line)
