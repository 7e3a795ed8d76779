"""Verdicts on figure 5 and on what is proved, from made-up results."""

from __future__ import annotations

import math

import pytest

from atomcast.experiments.figures import fig5a, fig5b, fig5c
from atomcast.experiments.figures.atom_counts import AtomCount
from atomcast.experiments.figures.atom_counts import findings as findings_on_atoms
from atomcast.experiments.figures.clustering_bound import ClusteringBound, Sample
from atomcast.experiments.figures.lower_bound import LowerBound
from atomcast.experiments.figures.shape import Found
from atomcast.experiments.figures.topologies import NetworkRun, Topologies
from atomcast.experiments.page.reports import Report
from atomcast.experiments.page.verdicts import Verdict
from atomcast.experiments.runs.curves import Average, Point
from atomcast.experiments.runs.hard_runs import HardRun

HOLDS, PARTLY, FAILS, UNMEASURED = Verdict
INF, NAN = math.inf, math.nan


def found_5a(rows, missing=fig5a.NO_RANKS):
    return fig5a.Fig5a().findings(Found(judged=rows, data=fig5a.StartedRanks(missing=missing)))


def timings(speedups, how=fig5a.CLOCK, network=0.0):
    rows = []
    for N, speedup in speedups.items():
        seconds = 10.0 / speedup
        own = seconds * (1 - network)
        rows.append(fig5a.Timing(how, N, 0, seconds, NAN, own, 0.0, seconds * network))
    return fig5a.with_speedups(rows)


def test_speedups():
    def verdict(speedups):
        return found_5a(timings(speedups))[0].verdict

    assert verdict({1: 1, 2: 1.9, 10: 8.5}) is HOLDS
    assert verdict({1: 1, 2: 1.9, 10: 6.0}) is PARTLY
    assert verdict({1: 1, 2: 1.1}) is FAILS
    assert verdict({1: 1}) is UNMEASURED


def test_every_way_of_measuring_has_its_verdict():
    rows = timings({1: 1, 2: 1.9}) + timings({1: 1, 2: 1.0}, fig5a.MPI)
    rows += timings({1: 1, 2: 1.3}, fig5a.CORRECTIVE_CLOCK)
    first, *_, last = found_5a(rows + timings({1: 1, 2: 1.7}, fig5a.ALONE))
    assert (first.verdict, last.verdict) == (HOLDS, FAILS)
    assert fig5a.MPI in last.claim
    assert last.measured == f"1.00 at N = 2 ({fig5a.ALONE}: 1.70 at N = 2)"
    # Two cores that gain 1.2 times by themselves cannot show that dFW gains 1.6.
    assert found_5a(rows + timings({1: 1, 2: 1.2}, fig5a.ALONE))[-1].verdict is UNMEASURED


def test_without_ranks_the_claim_stands_as_not_measured_and_says_why():
    last = found_5a(timings({1: 1, 2: 1.9}), "MPI ranks are not measured: no mpi4py")[-1]
    assert fig5a.MPI in last.claim
    assert (last.verdict, last.measured[-9:]) == (UNMEASURED, "no mpi4py")


def test_messages_and_computation():
    def verdicts(speedups, network):
        _, *found, memory, _ = found_5a(timings(speedups, network=network))
        assert memory.verdict is UNMEASURED
        return [finding.verdict for finding in found]

    assert verdicts({1: 1, 2: 1.9, 4: 3.6}, 0.05) == [HOLDS, HOLDS]
    assert verdicts({1: 1, 2: 1.9}, 0.5) == [FAILS, HOLDS]
    assert verdicts({1: 1, 2: 4.0, 4: 5.0}, 0.0) == [HOLDS, PARTLY]  # worse than O(n_i)
    assert verdicts({1: 1}, 0.0) == [UNMEASURED, UNMEASURED]


def selections(exact_ms=5.0, centers=4.0, free=1.0, objective=1.0, spent=INF):
    """Findings of figure 5(b); m-centers that do not get there have spent so many seconds."""
    rows = {
        fig5b.BALANCED: (2.0, 0.0, 1.0, 1.0, 1.0),
        fig5b.EXACTLY: (exact_ms, 0.0, 1.0, 4.0, 4.0),
        fig5b.CENTERS: (2.0, 3.0, objective, centers, min(centers, spent)),
        fig5b.FREE: (2.0, 0.0, objective, free, min(free, spent - 3.0)),
        fig5b.RANDOM: (2.0, 0.1, 1.0, 1.0, 1.0),
    }
    outcomes = [
        fig5b.Selected(kind, method, *numbers)
        for kind in fig5b.Fig5b().cases()
        for method, numbers in rows.items()
    ]
    return fig5b.Fig5b().findings(Found(judged=outcomes))


def verdicts_5b(**chosen):
    found = [finding.verdict for finding in selections(**chosen)]
    assert found[:3] == found[3:]  # the same numbers for data of both kinds
    return found[:3]


def test_unbalanced_data():
    assert verdicts_5b(centers=1.9) == [HOLDS, HOLDS, HOLDS]
    assert verdicts_5b(exact_ms=2.5, centers=40.0, objective=1.09) == [PARTLY, PARTLY, PARTLY]
    assert verdicts_5b(exact_ms=2.0, centers=40.0, free=5.0, objective=1.2) == [FAILS] * 3
    assert verdicts_5b(centers=3.0, free=3.0)[1] is PARTLY


def test_m_centers_that_did_not_get_there():
    # After 8 s, 5 without clustering, they have lost; after 6 s, 3 without, nobody knows.
    assert verdicts_5b(centers=INF, free=INF, spent=8.0)[1] is FAILS
    assert verdicts_5b(centers=INF, free=INF, spent=6.0)[1] is UNMEASURED
    said = selections(centers=INF, free=INF, spent=8.0)[1].measured
    assert said.startswith("m-centers did not get there in 8 s (exact dFW: 4 s)")


def test_sentences_on_unbalanced_data():
    _, time, error, *_ = selections(centers=140.0, objective=0.99)
    assert time.measured.startswith(
        "m-centers take 35 times as long as exact dFW (clustering: 3.00 s); "
    )
    assert error.measured == "1.00 % below with m-centers, 0.00 % above with a random subset"


def lossy(objectives):
    """Findings of figure 5(c) for a mean objective in each of ten rounds, by loss."""
    lines = {
        (fig5c.PROTOCOLS[0].panel, f"p = {p:g}"): [
            Average("x", "y", "round", k + 1.0, o, o, o) for k, o in enumerate(numbers)
        ]
        for p, numbers in objectives.items()
    }
    figure = fig5c.Fig5c(losses=tuple(objectives))
    ended = [
        fig5c.Ended(fig5c.ADULT, fig5c.PAPER, p, *[numbers[-1]] * 9)
        for p, numbers in objectives.items()
    ]
    found = Found(lines=lines, judged=ended)
    return [finding.verdict for finding in figure.findings(found)]


def test_lost_messages():
    falling = [10.0, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    slow = [10.0, 10, 9, 9, 8, 8, 7.5, 7.4, 7.3, 7.2]
    stuck = [10.0] * 10
    assert lossy({0.0: falling, 0.1: falling, 0.4: falling}) == [HOLDS, HOLDS, UNMEASURED]
    assert lossy({0.0: falling, 0.1: falling, 0.4: slow}) == [HOLDS, PARTLY, UNMEASURED]
    assert lossy({0.0: falling, 0.1: falling, 0.4: stuck})[0] is PARTLY
    assert lossy({0.0: falling, 0.4: stuck})[:2] == [FAILS, FAILS]
    # What counts is when it first had what it ends with: round 6, as without loss; not round 10.
    wavering = [10.0, 9, 8, 7, 6, 5, 6, 6, 6, 5]
    assert lossy({0.0: falling, 0.4: wavering})[:2] == [HOLDS, HOLDS]


def test_findings_of_fig5c_are_those_of_the_papers_protocol():
    rows, outcomes, ends = [], [], (1.0, 9.0, 50.0)  # of the classic step, line search, the log
    for (setting, protocol, *_), end in zip(fig5c.PROTOCOLS, ends, strict=False):
        for p in (0.0, 0.4):
            for k in range(1, 11):
                objective = 10.0 - (10 - end) * k / 10
                panel = f"{setting}\n{protocol}"
                point = Point(panel, f"p = {p:g}", 0, k, 0.1, objective, NAN, 0.1, k, k, k)
                rows.append(point)
            numbers = end, end, end, 1.0, end, 0.1, 10, 9, 0.0
            outcomes.append(fig5c.Ended(setting, protocol, p, *numbers))
    figure = fig5c.Fig5c(losses=(0.0, 0.4))
    found = Found(rows, outcomes, figure.lines(rows, outcomes))
    assert [f.verdict for f in figure.findings(found)] == [HOLDS, HOLDS, UNMEASURED]


# What is proved.


def network_row(values, formula):
    return NetworkRun("star", "classic", 0, 5, 4, 3, 2, 2, values, formula, 10)


def test_a_formula_that_fails_once_fails():
    good, bad = network_row(10, 10.0), network_row(11, 10.0)
    free = NetworkRun("star", "corrective", 0, 5, 4, 3, 2, 2, 7, NAN, 10)
    found = Topologies().findings(Found([good, free], [AtomCount(50, 0, 3, 10.0, 100)]))[:1]
    assert {finding.verdict for finding in found} == {HOLDS}
    found = Topologies().findings(Found([good, bad, free], [AtomCount(50, 0, 3, 10.0, 100)]))
    assert found[0].verdict is FAILS
    assert found[0].broken


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([(100, 120), (100, 90)], [HOLDS, HOLDS]),
        ([(100, 120), (100, 200)], [PARTLY, HOLDS]),
        ([(100, 200)], [FAILS, HOLDS]),
        ([(100, 999)], [FAILS, FAILS]),
    ],
)
def test_more_atoms(sent, expected):
    rows = [
        AtomCount(n, run, values // 10, 50.0, values)
        for run, pair in enumerate(sent)
        for n, values in zip((50, 800), pair, strict=True)
    ]
    assert [finding.verdict for finding in findings_on_atoms(rows)] == expected
    assert findings_on_atoms(rows[:1])[0].verdict is UNMEASURED


def instance(d=16, values=200, support=15, rounds=10, distance=1):
    return HardRun(
        "simplex", "classic", 1 / (6 * d), d, distance, rounds, support, 0.75 * d, d, values,
        values, 100.0 * distance, 0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([instance(), instance(32, 800, 30)], [HOLDS] * 4),
        ([instance(support=12), instance(32, 800, 30)], [FAILS, HOLDS, HOLDS, HOLDS]),
        ([instance(values=90)], [HOLDS, FAILS, UNMEASURED, HOLDS]),
        ([instance(), instance(32, 1600, 30)], [HOLDS, HOLDS, FAILS, HOLDS]),
        # 6.75 C_f / eps, C_f = 4, is 2592 at d = 16.
        ([instance(rounds=2592)], [HOLDS, HOLDS, UNMEASURED, HOLDS]),
        ([instance(rounds=2593)], [HOLDS, HOLDS, UNMEASURED, FAILS]),
    ],
)
def test_hard_instances(rows, expected):
    *found, nonzeros = LowerBound().findings(Found(rows))
    assert [finding.verdict for finding in found] == expected
    assert nonzeros.verdict is HOLDS


def test_more_nonzeros_than_the_theorem_allows():
    *_, nonzeros = LowerBound().findings(Found([instance(support=2593)]))
    assert nonzeros.broken


def test_only_one_of_two_series_is_steady():
    grows = [instance(), instance(32, 1600, 30)]
    steady = [row._replace(step="corrective", values=row.d**2) for row in grows]
    assert LowerBound().findings(Found([*grows, *steady]))[2].verdict is PARTLY


def test_the_bound_of_the_footnote():
    def verdicts(footnote, cauchy_schwarz):
        sample = Sample("a", 0, 10, 45, 0.0, 0.0, 1.0, 0.0)
        other = sample._replace(
            data="b", break_footnote=footnote, break_cauchy_schwarz=cauchy_schwarz
        )
        found = ClusteringBound().findings(Found([sample, other]))
        return [finding.verdict for finding in found], Report("t", "n", [], found).holds

    assert verdicts(0.0, 0.0) == ([HOLDS, HOLDS], True)
    assert verdicts(0.1, 0.0) == ([FAILS, HOLDS], True)
    assert verdicts(0.1, 0.1) == ([FAILS, FAILS], False)


def test_single_pairs_are_counted():
    sample = Sample("a", 0, 1000, 499_500, 1 / 499_500, 0.0, 1.25, 0.0)
    footnote, always = ClusteringBound().findings(Found([sample]))
    assert footnote.verdict is FAILS
    assert footnote.measured == (
        "a: 1 of 499,500 pairs and none of 1,000 nearest neighbours break it, by up to 1.25 times"
    )
    assert always.measured == "none of 499,500 pairs break it"
    footnote, _ = ClusteringBound().findings(Found([sample._replace(break_footnote=0.0)]))
    assert "by up to" not in footnote.measured
