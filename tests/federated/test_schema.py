"""Only what the schema has can be said, and a size is never believed."""

from __future__ import annotations

import contextlib
import dataclasses

import numpy as np
import pytest

from atomcast.federated.frames import FIRST, MORE, PIECE, Assembler, frames
from atomcast.federated.kinds import (
    KINDS,
    Begin,
    Floats,
    Ids,
    PartialPrediction,
    Refusal,
    ScoreRequest,
)
from atomcast.federated.schema import SchemaError, decode, encode

SAMPLES = {"int": -7, "float": 0.25, "bool": True, "str": "Zürich", "bytes": b"\0\xff"}
SAMPLES |= {"Floats": np.array([1.5, np.inf]), "Ids": np.array([3, 2**62])}


def sample(kind):
    return kind(**{field.name: SAMPLES[field.type] for field in dataclasses.fields(kind)})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_message_arrives_as_it_was_sent(kind):
    message = sample(kind)
    found = decode(encode(message))
    assert type(found) is kind
    for name, value in vars(message).items():
        np.testing.assert_array_equal(getattr(found, name), value)


def test_a_message_holds_numbers_texts_and_bytes_alone():
    """There is no place for the name of a file, a class or a function to be used as such."""
    kinds = {field.type for kind in KINDS for field in dataclasses.fields(kind)}
    assert kinds == set(SAMPLES)
    texts = {f.name for kind in KINDS for f in dataclasses.fields(kind) if f.type == "str"}
    assert not {"path", "file", "module", "function"} & texts


def test_no_bytes_do_harm():
    rng = np.random.default_rng(0)
    whole = encode(sample(Begin))
    for _ in range(2000):
        content = bytearray(whole)
        for place in rng.integers(len(content), size=rng.integers(1, 4)):
            content[place] = rng.integers(256)
        with contextlib.suppress(SchemaError):
            decode(bytes(content[: rng.integers(len(content) + 1)]))


def test_sizes_and_versions_are_checked():
    whole = encode(PartialPrediction(np.arange(4.0)))
    for wrong in (whole[:-1], whole + b"\0", b"", b"\x02" + whole[1:], b"\x01\xff" + whole[2:]):
        with pytest.raises(SchemaError):
            decode(wrong)
    huge = whole[:6] + (2**31).to_bytes(4, "little") + whole[10:]
    with pytest.raises(SchemaError, match="claims 2147483648 bytes, of which 32 are there"):
        decode(huge)
    with pytest.raises(SchemaError, match="at most 4096"):
        encode(Refusal("x" * 5000))


def test_pieces_are_put_together_up_to_a_limit():
    message = PartialPrediction(np.arange(2.5 * PIECE / 8))
    pieces = list(frames(message))
    assert len(pieces) == 3
    assert max(map(len, pieces)) <= PIECE + 16
    assembler = Assembler(4 * PIECE)
    assert [assembler.feed(piece) for piece in pieces[:2]] == [None, None]
    np.testing.assert_array_equal(assembler.feed(pieces[2]).values, message.values)
    with pytest.raises(SchemaError, match="was announced"):
        Assembler(PIECE).feed(pieces[0])
    with pytest.raises(SchemaError, match="out of place"):
        Assembler(4 * PIECE).feed(pieces[1])
    short = Assembler(2 * PIECE)
    short.feed(FIRST + (PIECE + 4).to_bytes(4, "little") + bytes(PIECE))
    with pytest.raises(SchemaError, match="longer than was announced"):
        short.feed(MORE + b"1234567")
    crumbs = Assembler(PIECE)  # each of which would have to be looked at
    crumbs.feed(FIRST + (10).to_bytes(4, "little") + b"1234")
    with pytest.raises(SchemaError, match="shorter than it should be"):
        crumbs.feed(MORE + b"1")


def test_arrays_keep_their_types():
    found = decode(encode(ScoreRequest(np.arange(3), np.ones(3), 1, 0.0, True, False)))
    assert found.ids.dtype == np.int64
    assert found.weights.dtype == np.float64
    assert Floats != Ids
