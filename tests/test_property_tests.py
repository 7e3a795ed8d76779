"""Property tests are the same on every machine, and more thorough when asked for."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from property_tests import FUZZ_FACTOR, multiply_examples


def a_property(seen, **how):
    @settings(**how)
    @given(value=st.integers(0, 10**9))
    def test(value):
        seen.append(value)

    return test


def collected(test, cls=None):
    return SimpleNamespace(obj=test, function=test, cls=cls)


def test_examples_are_the_same_each_time(request):
    if request.config.getoption("--hypothesis-profile"):
        pytest.skip("another profile was asked for")
    runs = [[], []]
    for seen in runs:
        a_property(seen, max_examples=20)()
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 10
    assert settings.default.database is None
    assert settings.default.deadline is None


def test_the_profile_fuzz_looks_elsewhere_each_time():
    runs = [[], []]
    for seen in runs:
        a_property(seen, parent=settings.get_profile("fuzz"), max_examples=20)()
    assert runs[0] != runs[1]


def test_more_examples_for_a_function_also_if_it_is_collected_twice():
    seen = []
    test = a_property(seen, max_examples=3)
    multiply_examples([collected(test), collected(test), collected(len)])
    test()
    assert len(seen) == 3 * FUZZ_FACTOR


def test_more_examples_for_a_state_machine():
    class Machine(RuleBasedStateMachine):
        @rule()
        def nothing(self):
            pass

    case = Machine.TestCase
    case.settings = settings(max_examples=3, stateful_step_count=7)
    multiply_examples([collected(case().runTest, case)])
    assert case.settings.max_examples == 3 * FUZZ_FACTOR
    assert case.settings.stateful_step_count == 7
