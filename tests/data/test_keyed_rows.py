"""Parties bring their rows into one order without showing their ids."""

from __future__ import annotations

import numpy as np
import pytest

from atomcast.data.keyed_rows import (
    common_order,
    keyed_hashes,
    order_digest,
    read_hashes,
    read_secret,
    rows_in_order,
    write_hashes,
)

SECRET = b"a secret of all parties"


def test_rows_of_all_parties_come_into_one_order():
    north, south = [3, 1, 4, 15], ["15", "4", "92", "3"]
    hashes = [keyed_hashes(ids, SECRET, "data") for ids in (north, south)]
    order = common_order(hashes)
    found = [
        np.array(ids, dtype=str)[rows_in_order(own, order, "data")].tolist()
        for ids, own in zip((north, south), hashes, strict=True)
    ]
    assert found[0] == found[1]
    assert sorted(found[0]) == ["15", "3", "4"]
    assert order_digest(order, SECRET) != order_digest(order[::-1], SECRET)


def test_without_the_secret_hashes_tell_nothing_of_ids():
    assert not set(keyed_hashes([1, 2], SECRET, "x")) & set(keyed_hashes([1, 2], SECRET * 2, "x"))


def test_what_cannot_be_put_in_order_is_named(tmp_path):
    hashes = keyed_hashes([1, 2], SECRET, "data")
    with pytest.raises(ValueError, match="no row is common"):
        common_order([hashes, keyed_hashes([3], SECRET, "data")])
    with pytest.raises(ValueError, match="lacks 1 of the 3 rows"):
        rows_in_order(hashes, [*hashes, "0" * 32], "data")
    with pytest.raises(ValueError, match="occurs more than once"):
        keyed_hashes([1, 1], SECRET, "data")
    (tmp_path / "short").write_text("secret\n")
    with pytest.raises(ValueError, match="could be guessed"):
        read_secret(tmp_path / "short")


def test_files_of_hashes(tmp_path):
    path = tmp_path / "north.hashes"
    hashes = keyed_hashes([1, 2], SECRET, "data")
    write_hashes(path, hashes)
    assert read_hashes(path) == hashes
    for wrong, text in (("x" * 32, "no file of keyed hashes"), (f"{hashes[0]}\n" * 2, "twice")):
        path.write_text(wrong)
        with pytest.raises(ValueError, match=text):
            read_hashes(path)
