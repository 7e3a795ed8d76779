"""How property tests are run: always the same examples, or, to look for trouble, many new ones."""

from __future__ import annotations

from hypothesis import is_hypothesis_test, settings

#: How many times more examples a test gets under the profile "fuzz" than it asks for.
FUZZ_FACTOR = 20


def register_profiles():
    """Make "repeatable" and "fuzz" known, and load the former; --hypothesis-profile loads another.

    Neither keeps failed examples on disk, where they would be tried on this machine alone; what is
    printed with a failure repeats it anywhere.
    """
    common = settings(database=None, deadline=None, print_blob=True)
    settings.register_profile("repeatable", common, derandomize=True)
    settings.register_profile("fuzz", common, derandomize=False)
    settings.load_profile("repeatable")


def multiply_examples(items):
    """Give each property test among `items` more examples than it asks for."""
    tests = {owner(item) for item in items if is_hypothesis_test(item.obj)}
    for test, name in tests:
        asked = getattr(test, name)
        setattr(test, name, settings(asked, max_examples=FUZZ_FACTOR * asked.max_examples))


def owner(item):
    """Which object keeps the settings of a test, and by what name.

    A function has no public name for them, and cannot be decorated twice.
    """
    if hasattr(item.obj, "_hypothesis_internal_use_settings"):
        return item.function, "_hypothesis_internal_use_settings"
    return item.cls, "settings"  # a state machine
