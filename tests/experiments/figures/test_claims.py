"""Verdicts follow from numbers: made-up results for each verdict of each claim."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atomcast.experiments.figures import baseline_figure, fig3, fig3_claims, fig4
from atomcast.experiments.figures.fig2b import Fig2b
from atomcast.experiments.figures.shape import Found
from atomcast.experiments.page.findings import Finding, number, spread
from atomcast.experiments.page.reports import Report
from atomcast.experiments.page.verdicts import Verdict, by_count, without_exception
from atomcast.experiments.runs import admm_runs
from atomcast.experiments.runs.baseline_runs import LOCAL, LOCAL_STAR, METHODS, RANDOM, RANDOM_STAR
from atomcast.experiments.runs.cost_ranges import Range
from atomcast.experiments.runs.curves import CLASSIC, COCOA, CORRECTIVE, LINE_SEARCH, PAPER, Point

HOLDS, PARTLY, FAILS, UNMEASURED = Verdict
INF, NAN = math.inf, math.nan


@given(st.lists(st.booleans(), max_size=6))
def test_verdicts_of_cases(cases):
    verdict = by_count(cases)
    assert (verdict is UNMEASURED) == (not cases)
    assert (verdict is HOLDS) == (len(cases) > 0 and False not in cases)
    assert (verdict is FAILS) == (len(cases) > 0 and True not in cases)
    if cases:
        assert without_exception(cases) is (FAILS if False in cases else HOLDS)


def test_a_broken_theorem_is_an_alarm_and_a_broken_claim_is_not():
    claim = Finding("c", "w", "r", "m", FAILS)
    assert Report("t", "n", [], [claim]).holds
    assert not Report("t", "n", [], [claim._replace(must=True)]).holds
    assert not Report("t", "n", [], [claim._replace(must=True, verdict=PARTLY)]).holds
    assert Report("t", "n", [], [claim._replace(must=True, verdict=UNMEASURED)]).holds


def test_ranges():
    assert spread([2.0, INF, 1.0, NAN]) == "1 to 2"
    assert spread([2.0, 2.0]) == "2"
    assert spread([1.684, 137.4, 4021.0]) == "1.68 to 4,021"
    assert spread([INF]) == spread([]) == "no such case"
    assert [number(x) for x in (0.028, 2.25, 99.96, 784.3, 1061, -7)] == [
        "0.028", "2.25", "100", "784", "1,061", "-7",
    ]  # fmt: skip


# Figure 2: objectives by method at the listed budgets; None: not begun.

BUDGETS = Fig2b().budgets
PANEL, OTHER = "beta=16", "beta=8"


def curve(method, objectives, panel):
    """One run, an iterate just at each budget."""
    rows = []
    for k, (budget, objective) in enumerate(zip(BUDGETS, objectives, strict=False)):
        if objective is not None:
            sent = int(budget)
            rows.append(Point(panel, method, 0, k + 1, 0.1, objective, NAN, 0.1, k, sent, 0))
    return rows


def figure_2(panel=PANEL, **chosen):
    """dFW at 8, 4, 2, 1 with either step, and all else at 100 but for what is given."""
    objectives = {method: [100.0] * 4 for method in METHODS}
    ours = chosen.pop("ours", [8.0, 4.0, 2.0, 1.0])
    objectives |= {CLASSIC: ours, LINE_SEARCH: ours}
    names = {"classic": CLASSIC, "search": LINE_SEARCH, "local": LOCAL, "random": RANDOM}
    names |= {"local_star": LOCAL_STAR, "random_star": RANDOM_STAR}
    objectives |= {names[name]: numbers for name, numbers in chosen.items()}
    return [row for method, line in objectives.items() for row in curve(method, line, panel)]


def verdicts_of_2(rows, betas=(16.0,)):
    return [finding.verdict for finding in Fig2b(betas=betas).findings(Found(rows))]


def test_dfw_beside_local_choices():
    everybody, coordinator, *_ = verdicts_of_2(figure_2())
    assert (everybody, coordinator) == (HOLDS, HOLDS)
    everybody, coordinator, *_ = verdicts_of_2(figure_2(local=[100, 100, 100, 0.5]))
    assert (everybody, coordinator) == (PARTLY, HOLDS)
    low = [0.1] * 4
    everybody, coordinator, *_ = verdicts_of_2(figure_2(local_star=low, random_star=low))
    assert (everybody, coordinator) == (HOLDS, FAILS)
    # The better of the two steps counts, at every budget by itself.
    first, second = [8.0, 4.0, 90.0, 90.0], [90.0, 90.0, 2.0, 1.0]
    assert verdicts_of_2(figure_2(classic=first, search=second))[0] is HOLDS
    assert verdicts_of_2(figure_2(classic=[99.0] * 4, search=[99.0] * 4))[0] is FAILS


def test_a_little_lower_is_not_significantly_lower():
    near = [8 * 1.05, 4 * 1.05, 2 * 1.05, 1.05]
    assert verdicts_of_2(figure_2(local=near, random=near))[0] is FAILS
    clear = [8 * 1.2, 4 * 1.2, 2 * 1.2, 1.2]
    assert verdicts_of_2(figure_2(local=clear, random=clear))[0] is HOLDS


def test_only_budgets_that_were_spent_count():
    # dFW stops at 300,000 values; that local FW overtakes it later says nothing.
    stopped = {"ours": [8.0, 4.0], "local": [100, 100, 1, 1], "random": [100, 100, 1, 1]}
    assert verdicts_of_2(figure_2(**stopped))[0] is HOLDS
    none = {"local": [None] * 3 + [50.0], "random": [None] * 3 + [50.0], "ours": [8.0]}
    assert verdicts_of_2(figure_2(**none))[0] is UNMEASURED
    # Nor does it say anything that a baseline has ended, or has not begun.
    short = {"local_star": [2.0], "random_star": [2.0]}
    assert verdicts_of_2(figure_2(**short))[1] is FAILS
    late = {"local": [None] * 3 + [50.0], "ours": [8.0, 4.0]}
    assert verdicts_of_2(figure_2(**late))[0] is PARTLY


def test_local_beside_random_choices():
    def verdict(local, random):
        race = baseline_figure.Race(figure_2(local=local, random=random), PANEL, BUDGETS)
        return baseline_figure.local_beats_random(race, "here").verdict

    assert verdict([50, 20, 10, 5], [100, 50, 20, 10]) is HOLDS
    assert verdict([50, 20, 10, 5], [100, 30, 12, 6]) is PARTLY
    assert verdict([90, 45, 18, 9], [100, 50, 20, 10]) is PARTLY
    assert verdict([100, 50, 20, 10], [50, 20, 10, 5]) is FAILS


def test_slow_and_fast_baselines():
    def verdict(**chosen):
        return verdicts_of_2(figure_2(**chosen))[2]

    fast = [100, 10, 5, 1]
    assert verdict() is HOLDS
    assert verdict(local=fast) is PARTLY
    assert verdict(local=fast, random=fast) is FAILS
    assert verdict(local=[None] * 3 + [100]) is PARTLY
    assert verdict(ours=[8.0]) is UNMEASURED


def test_other_values_of_beta():
    def verdict(**chosen):
        rows = figure_2() + figure_2(OTHER, **chosen)
        return verdicts_of_2(rows, (16.0, 8.0))[-1]

    low = [0.1] * 4
    assert verdict() is HOLDS
    assert verdict(local=low) is PARTLY
    assert verdict(local=low, random=low) is FAILS
    # A little better instead of a little worse is not significant, nor is more of the same.
    usual = [8.4, 4.2, 2.1, 1.05]
    for local, expected in (([7.9, 3.9, 1.9, 0.99], HOLDS), ([80, 40, 20, 1.05], PARTLY)):
        rows = figure_2(local=usual) + figure_2(OTHER, local=local)
        assert verdicts_of_2(rows, (16.0, 8.0))[-1] is expected
    assert verdicts_of_2(figure_2())[-1] is UNMEASURED


def test_nearly_the_same_budget_counts_once():
    def cases(most):
        rows = [Point(PANEL, m, 0, 1, 0.1, 2.0, NAN, 0.1, 1, 1000, 0) for m in (CLASSIC, LOCAL)]
        rows += [Point(PANEL, m, 0, 2, 0.1, 1.0, NAN, 0.1, 1, most, 0) for m in (CLASSIC, LOCAL)]
        race = baseline_figure.Race(rows, PANEL, [3_000_000])
        return [case.budget for case in race.compared(CLASSIC, LOCAL)]

    assert cases(3_034_900) == cases(3_000_000) == [3_000_000]
    assert cases(3_500_000) == [3_000_000, 3_500_000]
    assert cases(2_999_999) == [2_999_999]


# Figures 3 and 4.


def synthetic(problems, values=10**6, worst=INF):
    """Verdicts of figure 3; a problem is s_A s_alpha n, and what three methods needed.

    Those that did not arrive have sent so many values.
    """
    verdicts = []
    for rule, classic, corrective, admm in problems:
        # The better step, both, with atoms sent once; corrective, compound, auto, ProxCoCoA.
        costs = (*[classic] * 4, *[corrective] * 4, admm, worst)
        least = [values if cost == INF else cost for cost in costs]
        verdicts.append(
            fig3.Needs(0.1, 0.1, rule, 5.0, 1, *costs[:9], admm_runs.NAMES[2], worst, *least)
        )
    sparse, _, dense, tuned, alike = fig3.Fig3().findings(Found(judged=verdicts))
    return [finding.verdict for finding in (sparse, dense, alike, tuned)]


@pytest.mark.parametrize(
    ("problems", "expected"),
    [
        ([(1, 10, 5, 100), (10, 50, 5, 100)], HOLDS),
        ([(1, 90, 5, 100), (10, 90, 5, 100)], PARTLY),  # less, but not much less
        ([(1, 10, 5, 100), (10, INF, 5, 100)], PARTLY),
        ([(1, 200, 5, 100), (10, INF, 5, 100)], FAILS),
        ([(1, 10, 5, INF)], HOLDS),
        ([(100, 10, 5, 100), (1, INF, 5, INF)], UNMEASURED),
    ],
)
def test_sparse_problems(problems, expected):
    assert synthetic(problems)[0] is expected


@pytest.mark.parametrize(
    ("problems", "dense", "alike"),
    [
        ([(100, 200, 300, 100), (1000, 900, 9, 100)], HOLDS, HOLDS),
        ([(500, 50, 300, 100), (1000, 900, 9, 100)], PARTLY, UNMEASURED),
        ([(500, 50, 300, 100)], FAILS, UNMEASURED),
        # The tie of the paper is neither dense nor sparse.
        ([(100, 50, 300, 100)], UNMEASURED, HOLDS),
        ([(100, INF, 115, 100)], UNMEASURED, PARTLY),
        ([(100, 200, 1, 100), (50, 500, 1, 100)], UNMEASURED, PARTLY),
        ([(100, INF, INF, 100), (1000, INF, INF, 100)], HOLDS, FAILS),
        ([(1, 10, 5, 100)], UNMEASURED, UNMEASURED),
    ],
)
def test_dense_problems_and_the_rule_of_thumb(problems, dense, alike):
    assert synthetic(problems)[1:3] == [dense, alike]


def test_a_run_that_ended_too_early_decides_nothing():
    # dFW had sent 50 values when it ended, and ADMM needed 100: who knows.
    early = [(1, INF, 5, 100), (100, INF, INF, 100), (1000, INF, INF, 100)]
    assert synthetic(early, values=50) == [UNMEASURED] * 4
    # With 150 it has lost, but may still be similar.
    assert synthetic(early, values=150)[:3] == [FAILS, HOLDS, UNMEASURED]
    assert synthetic([(1, INF, 5, 100), (10, 20, 5, 100)], values=50)[0] is HOLDS


def test_one_unfinished_run_of_five():
    """Four arrived; with what the fifth has sent in vain, the mean is above ADMM's already."""
    truth = fig3.Truth(100.0, 0.0, 5)
    panel, arrived, late = "s_A=0.01 s_alpha=0.01", truth.target, 50.0
    rows = []
    for run, (sent, objective) in enumerate(
        [(14.0, arrived), (11.9, arrived), (16.4, arrived), (18.1, arrived), (18.9, late)]
    ):
        for method in (*fig3.SHOWN, COCOA, *admm_runs.NAMES):
            ours = method not in admm_runs.NAMES
            values, end = (sent, objective) if ours else (14.8, arrived)
            start = Point(panel, method, run, 0, 0.0, 100.0, 100.0, NAN, 0, 1, 0)
            rows += [start, start._replace(round=1, objective=end, values=int(1e6 * values))]
    (verdict,) = fig3.Fig3().judge(rows, {panel: [truth] * 5})
    assert (verdict.classic, verdict.admm) == (INF, 14.8e6)
    assert verdict.least_classic == pytest.approx(15.86e6)
    assert verdict.worst_admm == verdict.least_worst_admm == 14.8e6
    finding, *_ = fig3.Fig3().findings(Found(judged=[verdict]))
    assert finding.verdict is FAILS
    assert finding.measured.startswith("fewer on 0 of 1 problem; ")


ranges = st.one_of(
    st.floats(1, 100).map(lambda x: (x, x)), st.floats(1, 100).map(lambda x: (x, INF))
)


@given(ranges, ranges, st.floats(0, 3), st.floats(0, 3), st.sampled_from([1.0, 3.0, 10.0]))
def test_what_is_settled_stays_so_whatever_was_not_run(ours, theirs, more, most, times):
    """Longer runs would have found some cost in the range: the answer is that of any such."""
    a = ours[0] * 10**more if ours[1] == INF else ours[0]
    b = theirs[0] * 10**most if theirs[1] == INF else theirs[0]
    answer = Range(*theirs).over(Range(*ours)).above(times)
    assert answer is None or answer == (b / a > times)
    similar = fig3_claims._similar(Range(*theirs).over(Range(*ours)))
    assert similar is None or similar == (3 * (b / a) >= 1 and b / a <= 3)
    if INF not in (ours[1], theirs[1]):
        assert None not in (answer, similar)


@pytest.mark.parametrize(
    ("classic", "worst", "expected"),
    [
        (200.0, 300.0, HOLDS),
        (200.0, INF, HOLDS),  # the worst choice does not arrive
        (200.0, 150.0, FAILS),
        (INF, 150.0, FAILS),  # dFW has sent 10^6 in vain
        (INF, INF, UNMEASURED),
        (50.0, 300.0, UNMEASURED),  # there is no edge to lose
    ],
)
def test_tuning(classic, worst, expected):
    assert synthetic([(1000, classic, 5, 100)], worst=worst)[3] is expected
    assert synthetic([(100, classic, 5, 100)], worst=worst)[3] is UNMEASURED


def dorothea(*cases, values=10**6, rounds=10**6, seconds=1e6):
    """Findings of figure 4; a case is beta, then (values, rounds, seconds) of dFW and of ADMM.

    Those that did not arrive have spent so much.
    """
    costs = []
    for beta, *needed in cases:
        for method, cost in zip((PAPER, admm_runs.NAMES[2]), needed, strict=True):
            spent = zip(cost, (values, rounds, seconds), strict=True)
            least = [much if one == INF else one for one, much in spent]
            costs.append(fig4.Cost(beta, 0.1, method, *cost, *least))
        costs.append(fig4.Cost(beta, 0.1, CORRECTIVE, *[1.0] * 6))
    *first, _, _, each, time = fig4.Fig4().findings(Found(judged=costs))
    costs = [cost._replace(method=SLOW_ADMM.get(cost.method, cost.method)) for cost in costs]
    *_, slow_each, slow_time, _, _ = fig4.Fig4().findings(Found(judged=costs))
    assert (slow_each[3:], slow_time[3:]) == (each[3:], time[3:])  # by the same rules
    return [finding.verdict for finding in (*first, each, time)]


NEVER = (INF, INF, INF)
SLOW_ADMM = {admm_runs.NAMES[2]: admm_runs.PROXIMAL}


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        # The paper's world: less at first, fewer but dearer iterations, far slower.
        (
            [(8, (1, 100, 1), (5, 10, 20)), (24, (9, 100, 1), (8, 10, 20))],
            [HOLDS, HOLDS, HOLDS, HOLDS, HOLDS],
        ),
        # ADMM is as cheap a round and faster, but falls behind.
        (
            [(8, (5, 100, 1), (4, 10, 0.1)), (24, (1, 100, 1), (8, 10, 0.1))],
            [FAILS, FAILS, HOLDS, FAILS, FAILS],
        ),
        # dFW is faster by less than an order, and does not arrive for one beta.
        (
            [(8, (1, 100, 1), (5, 10, 2)), (16, NEVER, (1, 10, 2)), (24, NEVER, (8, 10, 2))],
            [PARTLY, HOLDS, HOLDS, HOLDS, PARTLY],
        ),
        # Everything depends on beta.
        (
            [(8, (1, 5, 1), (5, 10, 20)), (24, (9, 100, 1), (8, 10, 0.1))],
            [HOLDS, HOLDS, PARTLY, PARTLY, PARTLY],
        ),
        ([(8, NEVER, NEVER), (24, NEVER, NEVER)], [UNMEASURED] * 5),
    ],
)
def test_dorothea(cases, expected):
    assert dorothea(*cases) == expected


def test_dorothea_where_runs_ended_early():
    cases = [(8, (1, 100, 1), (5, 10, 20)), (24, NEVER, (8, 10, 20))]
    # 1 value, 50 rounds and 1 second were not enough for dFW: that says something of rounds only.
    short = {"values": 1, "rounds": 50, "seconds": 1.0}
    assert dorothea(*cases, **short) == [HOLDS, UNMEASURED, HOLDS, HOLDS, HOLDS]
    longer = {"values": 9, "rounds": 50, "seconds": 3.0}
    assert dorothea(*cases, **longer) == [HOLDS, HOLDS, HOLDS, HOLDS, PARTLY]
