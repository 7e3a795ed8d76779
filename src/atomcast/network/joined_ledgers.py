"""One account of several runs: the folds of a cross-validation, and the fit that follows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from atomcast.network.disclosure import BEFORE, Disclosure
from atomcast.network.ledger import Ledger


def named(what: str, ledgers: Iterable[Ledger]) -> list[tuple[str, Ledger]]:
    """Ledgers that are called "fold 1", "fold 2", ... if `what` is "fold"."""
    return [(f"{what} {k}", ledger) for k, ledger in enumerate(ledgers, 1)]


def joined(parts: Iterable[tuple[str, Ledger]]) -> Ledger:
    """One account of the runs that make up a fit, by what each of them is called.

    The rounds of each run follow those of the one before. The target is told once, before the
    first: as much of it as the run has that has the most.
    """
    runs = list(parts)
    last = runs[-1][1]
    whole = Ledger(last.nodes, last.parties)
    whole.edges, whole.labels, whole.audit_heads = last.edges, last.labels, last.audit_heads
    whole.uncertified = tuple({name: 0 for _, ledger in runs for name in ledger.uncertified})
    target = max((ledger for _, ledger in runs), key=lambda ledger: ledger._before.values)
    for phase, ledger in runs:
        _append_traffic(whole, ledger, with_target=ledger is target)
        whole.disclosures.extend(_within(phase, one) for one in ledger.disclosures)
        whole.told += [_within(phase, one) for one in ledger.told if one.kind != "target"]
    whole.told[:0] = [one for one in target.told if one.kind == "target"]
    return whole


def _append_traffic(whole: Ledger, ledger: Ledger, with_target: bool) -> None:
    """Enter the messages of a ledger in rounds that follow those that are there."""
    start, spent = len(whole.hops_by_round()), ledger.seconds_by_round()
    for round, traffic in ledger.entries():
        if round != BEFORE:
            whole.append(start + round, traffic)
        elif with_target:
            whole.append(BEFORE, traffic)
    whole._count()
    for round, seconds in enumerate(spent, start):
        whole._come_to(round)
        whole._spent[round] = seconds
    whole._seconds += ledger.seconds


def _within(phase: str, one: Disclosure) -> Disclosure:
    """A disclosure as part of a larger phase."""
    return replace(one, phase=", ".join(filter(None, (phase, one.phase))))
