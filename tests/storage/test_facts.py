"""What objects say of themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from atomcast.storage.facts import Untold, facts
from atomcast.storage.fingerprint import object_fingerprint


@dataclass(slots=True)
class Slotted:
    """Has no __dict__."""

    size: int
    _workspace: int = 0


def test_attributes_are_found_by_path_and_workspace_is_none():
    said = facts({"a": Slotted(3, 4), "b": [1.0, np.float64(2.0)]}, "private")
    assert said == {
        "type": "dict",
        "type of a": "Slotted",
        "a.size": "3",
        "type of b": "list",
        "b.0": "1.0",
        "b.1": "2.0",
    }


def test_where_the_nonzeros_are_counts():
    one, other = (sparse.csc_array(np.roll(np.eye(3), k, axis=0)) for k in (0, 1))
    assert facts(one, "private") != facts(other, "private")


def test_arrays_of_objects_are_told_by_what_they_hold():
    one, other = (np.array(["left", last], dtype=object) for last in ("right", "wrong"))
    assert facts(one, "private") == facts(one.copy(), "private") != facts(other, "private")


def test_what_cannot_be_told_is_named_with_its_place():
    assert facts(len, "private") == {"": "some builtin_function_or_method"}
    assert isinstance(facts(len, "private")[""], Untold)
    with pytest.raises(ValueError, match=r"some builtin_function_or_method .* \(a\.1\)"):
        object_fingerprint({"a": [1, len]})
