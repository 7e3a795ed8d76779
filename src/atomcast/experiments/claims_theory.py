"""Section 4 and a footnote of section 6.3: statements that are proved, looked at in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from atomcast.experiments.findings import (
    NO_CASE,
    Finding,
    by_count,
    count,
    number,
    spread,
    without_exception,
)

if TYPE_CHECKING:
    from atomcast.experiments.atom_counts import Row as Count
    from atomcast.experiments.clustering_bound import Row as Sample
    from atomcast.experiments.lower_bound import Row as Instance
    from atomcast.experiments.topologies import Row as Run

#: Theorem 1: the gap is within eps after so many times C_f / eps iterations.
ITERATIONS = 6.75
#: C_f of ||A alpha||^2 with orthonormal A is twice the squared diameter of the domain.
CURVATURE = {"simplex": 4.0, "l1": 8.0}
#: By so much a cost may grow that is said not to.
STEADY = 1.1
#: The same where problems differ, as they do once there are more atoms.
UNCHANGED = 1.5


def topologies(rows: Sequence[Run]) -> list[Finding]:
    """What is sent, and what should be."""
    exact = [row for row in rows if row.step == "classic"]
    same = [row.values == row.formula for row in exact]
    networks = "; ".join(dict.fromkeys(row.network for row in exact))
    text = f"all {len(exact)}" if all(same) else f"only {sum(same)} of {len(exact)}"
    return [
        Finding(
            "communication is O(Nd) a round on stars and trees, O(N(N + d)) on a star without "
            "aggregation and O(M(N + d)) on a graph without a spanning tree",
            "section 4.1",
            "the values sent are those of the formula with its constants, in every run",
            f"measured = formula in {text} runs of the classic step ({networks})",
            without_exception(same),
            must=True,
        ),
    ]


def atoms(rows: Sequence[Count]) -> list[Finding]:
    """More atoms, and all else as before."""
    few, many = (end(row.atoms for row in rows) for end in (min, max))
    sent = {(row.atoms, row.run): row.values for row in rows}
    growth = [sent[many, row.run] / row.values for row in rows if row.atoms == few < many]
    return [
        Finding(
            "communication does not depend on the total number of atoms n",
            "abstract; Theorem 2",
            "until the gap is within eps, the classic step sends at most 1.5 times as many values "
            "with the most atoms as with the fewest: in all runs, in some, in none",
            f"{spread(growth)} times as many with n = {many:,} as with n = {few:,}, in "
            f"{count(len(growth), 'run')}"
            if growth
            else NO_CASE,
            by_count(times <= UNCHANGED for times in growth),
        ),
        _bounded(
            "the number of rounds has a bound without n",
            "Theorem 1",
            "rounds",
            [row.rounds / row.allowed for row in rows],
        ),
    ]


def _bounded(claim: str, where: str, what: str, shares: Sequence[float]) -> Finding:
    """Something is no more than Theorem 1 allows, of which it is a share in every run."""
    return Finding(
        claim,
        where,
        f"the classic step needs at most 6.75 C_f / eps {what}, in every run",
        f"{spread(shares)} of what the theorem allows, in {count(len(shares), 'run')}",
        without_exception(share <= 1 for share in shares),
        must=True,
    )


def lower_bound(rows: Sequence[Instance]) -> list[Finding]:
    """Hard instances: nobody gets below the bound, and dFW is a constant above it."""
    over = [row.support > row.needed for row in rows]
    paid = [row.values > row.bound for row in rows]
    classic = [row for row in rows if row.step == "classic"]
    allowed = [ITERATIONS * CURVATURE[row.form] / row.eps for row in classic]
    rounds, nonzeros = (
        [getattr(row, name) / most for row, most in zip(classic, allowed, strict=True)]
        for name in ("rounds", "support")
    )
    return [
        Finding(
            "every solution within eps has more than 3d/4 atoms",
            "section 4.2, Claim 1",
            "in every run",
            f"{'every' if all(over) else 'NOT every'} solution within eps has more than 3d/4 atoms:"
            f" {spread(row.support / row.d for row in rows)} d, in {count(len(rows), 'run')}",
            without_exception(over),
            must=True,
        ),
        Finding(
            "no deterministic algorithm after which a node has all selected atoms sends fewer than "
            "Omega(d/eps) bits, times the distance of the nodes",
            "Theorem 3; appendix B",
            "every run sends more than the bound with its constants, counted in float64 values",
            f"{spread(row.values / row.bound for row in rows if row.bound)} times the bound, in "
            f"{count(len(rows), 'run')}" + ("" if all(paid) else ": the bound is VIOLATED"),
            without_exception(paid),
            must=True,
        ),
        _optimal(rows),
        _bounded(
            "dFW ends with a gap within eps after O(1/eps) rounds",
            "Theorems 1 and 2",
            "rounds",
            rounds,
        ),
        _bounded("a solution within eps has O(1/eps) nonzeros", "section 2", "nonzeros", nonzeros),
    ]


def _optimal(rows: Sequence[Instance]) -> Finding:
    """From the smallest instance of two nodes to the largest, by step and form."""
    series: dict[tuple[str, str], list[Instance]] = {}
    for row in rows:
        if row.distance == 1:
            series.setdefault((row.step, row.form), []).append(row)
    cases, texts = [], []
    for (step, form), mine in series.items():
        first, last = min(mine, key=lambda row: row.d), max(mine, key=lambda row: row.d)
        if first.d < last.d:
            before, after = (row.values * row.eps / row.d for row in (first, last))
            cases.append(after <= STEADY * before)
            texts.append(f"{step}, {form}: {before:.3f} at d = {first.d}, {after:.3f} at {last.d}")
    return Finding(
        "dFW's communication matches the bound in its dependency on d and eps",
        "abstract; section 4.2",
        "values sent, divided by d/eps, grow by no more than 10 % from the smallest instance to "
        "the largest: for all steps and forms, for some, for none",
        "; ".join(texts) or NO_CASE,
        by_count(cases),
    )


def clustering(rows: Sequence[Sample]) -> list[Finding]:
    """The bound of the footnote, and the one that always holds."""
    texts = []
    for name in dict.fromkeys(row.data for row in rows):
        mine = [row for row in rows if row.data == name]
        pairs = _counted("pairs", ((row.break_footnote, row.pairs) for row in mine))
        nearest = _counted(
            "nearest neighbours", ((row.nearest_break, row.examples) for row in mine)
        )
        broken = any(row.break_footnote for row in mine)
        worst = f", by up to {number(max(row.worst for row in mine))} times" if broken else ""
        texts.append(f"{name}: {pairs} and {nearest} break it{worst}")
    always = _counted("pairs", ((row.break_cauchy_schwarz, row.pairs) for row in rows))
    return [
        Finding(
            "gradients of two examples differ by at most their squared distance in kernel space",
            "section 6.3, footnote",
            "no pair of examples breaks it, in any sample; a rounding error breaks nothing",
            "; ".join(texts) or NO_CASE,
            without_exception(row.break_footnote == 0 for row in rows),
        ),
        Finding(
            "they differ by at most twice the distance times the largest norm (Cauchy-Schwarz)",
            "not in the paper: what always holds",
            "no pair of examples breaks it, in any sample",
            f"{always} break it",
            without_exception(row.break_cauchy_schwarz == 0 for row in rows),
            must=True,
        ),
    ]


def _counted(what: str, shares: Iterable[tuple[float, int]]) -> str:
    """How many of how many, from shares of several samples."""
    counts = [(round(share * size), size) for share, size in shares]
    some, size = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    share = f" ({number(100 * some / size)} %)" if some > 1 else ""
    return f"{f'{some:,}' if some else 'none'} of {size:,} {what}{share}"
