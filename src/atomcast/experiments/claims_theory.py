"""Section 4 and a footnote of section 6.3: statements that are proved, looked at in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from atomcast.experiments.findings import Finding, by_count, spread, without_exception

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
            f"{len(growth)} runs",
            by_count(times <= UNCHANGED for times in growth),
        ),
        Finding(
            "the number of rounds has a bound without n",
            "Theorem 1",
            "the classic step needs at most 6.75 C_f / eps rounds, in every run",
            f"{spread(row.rounds / row.allowed for row in rows)} of what the theorem allows, in "
            f"{len(rows)} runs",
            without_exception(row.rounds <= row.allowed for row in rows),
            must=True,
        ),
    ]


def lower_bound(rows: Sequence[Instance]) -> list[Finding]:
    """Hard instances: nobody gets below the bound, and dFW is a constant above it."""
    over = [row.support > row.needed for row in rows]
    paid = [row.values > row.bound for row in rows]
    classic = [row for row in rows if row.step == "classic"]
    allowed = [ITERATIONS * CURVATURE[row.form] / row.eps for row in classic]
    rounds = [row.rounds / most for row, most in zip(classic, allowed, strict=True)]
    return [
        Finding(
            "every solution within eps has more than 3d/4 atoms",
            "section 4.2, Claim 1",
            "in every run",
            f"{'every' if all(over) else 'NOT every'} solution within eps has more than 3d/4 atoms:"
            f" {spread(row.support / row.d for row in rows)} d, in {len(rows)} runs",
            without_exception(over),
            must=True,
        ),
        Finding(
            "no algorithm sends fewer than Omega(d/eps) values, times the distance of the nodes",
            "abstract; Theorem 3; appendix B",
            "every run sends more than the bound with its constants",
            f"{spread(row.values / row.bound for row in rows if row.bound)} times the bound, in "
            f"{len(rows)} runs" + ("" if all(paid) else ": the bound is VIOLATED"),
            without_exception(paid),
            must=True,
        ),
        _optimal(rows),
        Finding(
            "dFW ends with a gap within eps after O(1/eps) rounds",
            "Theorems 1 and 2",
            "the classic step needs at most 6.75 C_f / eps rounds, in every run",
            f"{spread(rounds)} of what the theorem allows, in {len(classic)} runs",
            without_exception(share <= 1 for share in rounds),
            must=True,
        ),
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
        "; ".join(texts) or "instances of one size only",
        by_count(cases),
    )


def clustering(rows: Sequence[Sample]) -> list[Finding]:
    """The bound of the footnote, and the one that always holds."""
    names = list(dict.fromkeys(row.data for row in rows))
    texts = []
    for name in names:
        mine = [row for row in rows if row.data == name]
        pairs = spread((100 * row.break_footnote for row in mine), ".1f")
        nearest = spread((100 * row.nearest_break for row in mine), ".1f")
        worst = max(row.worst for row in mine)
        texts.append(
            f"{name}: {pairs} % of pairs break it and {nearest} % of nearest neighbours, by up to "
            f"{worst:.2f} times"
        )
    worst_share = max((row.break_cauchy_schwarz for row in rows), default=0.0)
    return [
        Finding(
            "gradients of two examples differ by at most their squared distance in kernel space",
            "section 6.3, footnote",
            "no pair of examples breaks it, in any sample; a rounding error breaks nothing",
            "; ".join(texts),
            without_exception(row.break_footnote == 0 for row in rows),
        ),
        Finding(
            "they differ by at most twice the distance times the largest norm (Cauchy-Schwarz)",
            "not in the paper: what always holds",
            "no pair of examples breaks it, in any sample",
            f"up to {worst_share:.1%} of the pairs of a sample break it",
            without_exception(row.break_cauchy_schwarz == 0 for row in rows),
            must=True,
        ),
    ]
