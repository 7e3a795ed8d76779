"""Theorem 1: the gap is within eps after so many iterations, whatever the problem."""

from __future__ import annotations

from collections.abc import Sequence

from atomcast.experiments.page.findings import Finding, count, spread, theorem

#: So many times C_f / eps.
ITERATIONS = 6.75


def within_theorem1(claim: str, where: str, what: str, shares: Sequence[float]) -> Finding:
    """Something is no more than Theorem 1 allows, of which it is a share in every run."""
    return theorem(
        claim,
        where,
        f"the classic step needs at most 6.75 C_f / eps {what}, in every run",
        f"{spread(shares)} of what the theorem allows, in {count(len(shares), 'run')}",
        [share <= 1 for share in shares],
    )
