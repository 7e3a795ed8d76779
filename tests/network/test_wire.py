"""The wire format: exact, small, and safe against damage; and the atom that it carries."""

from __future__ import annotations

import tracemalloc
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from atomcast.messages.atom import MAX_EXTRAS, MAX_LENGTH, Atom, same
from atomcast.network.wire import codec
from atomcast.network.wire.bits import (
    UNFOLD_LIMIT,
    Reader,
    from_bits,
    pack,
    to_bits,
    unpack,
)
from atomcast.network.wire.codec import WireError, as_sent, decode, encode, encoded_size, varint
from atomcast.network.wire.values import _fills_its_type

# --- atoms of every kind --------------------------------------------------------------------


def numbers(width: Literal[32, 64]) -> st.SearchStrategy[st.SearchStrategy[float]]:
    """Ways to draw the values of one atom; each is a strategy for a single value."""
    finite = st.floats(allow_nan=False, allow_infinity=False, width=width)
    nasty = [0.0, -0.0, 1.0, -1.0, 2.0**-149, -(2.0**-126), 2.0**127, 65504.0, 65536.0]
    if width == 64:
        nasty += [5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 2.0**53 + 2]
    return st.sampled_from(
        [
            finite,
            st.sampled_from(nasty),
            st.sampled_from([0.0, 1.0]),
            st.just(1.0),
            st.integers(-128, 127).map(float),
            st.integers(0, 255).map(float),
            st.integers(-40_000, 40_000).map(float),
            st.integers(-99_999, 99_999).map(lambda number: number / 100),
            st.integers(-(2**31), 2**31).map(lambda number: number / 1e6),
            st.floats(width=16, allow_nan=False, allow_infinity=False),
        ]
    )


@st.composite
def atoms(draw: st.DrawFn, max_size: int = 80) -> Atom:
    width: Literal[32, 64] = draw(st.sampled_from([32, 64]))
    value = draw(numbers(width))
    values = np.array(draw(st.lists(value, max_size=max_size)), dtype=f"float{width}")
    identity = draw(st.one_of(st.integers(0, 300), st.integers(0, 2**63 - 1)))
    extras = np.array(draw(st.lists(draw(numbers(64)), max_size=3)), dtype=np.float64)
    name = draw(st.text(max_size=5))
    if draw(st.booleans()):
        return Atom(identity, values.size, values, None, extras, name)
    d = values.size + draw(st.sampled_from([0, 1, 7, 100, 5_000, 2**20, 2**40, 2**61]))
    index = st.integers(0, max(d - 1, 0))
    chosen = draw(st.sets(index, min_size=values.size, max_size=values.size))
    indices = np.array(sorted(chosen), dtype=np.int64)
    if d < 2**31 and draw(st.booleans()):
        indices = indices.astype(np.int32)
    return Atom(identity, d, values, indices, extras, name)


def random_binary(d: int, n: int, seed: int = 0) -> Atom:
    rng = np.random.default_rng(seed)
    return Atom(5000, d, np.ones(n), np.sort(rng.choice(d, n, replace=False)).astype(np.int32))


def random_bits(d: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.random.default_rng(0).random(d) < 0.5


def examples() -> dict[str, Atom]:
    rng = np.random.default_rng(0)
    gaussian = rng.standard_normal(50)
    skewed = np.r_[np.arange(200), 2**40 + np.arange(0, 20_000, 100)]
    return {
        "dense": Atom(3, 50, gaussian, None, np.array([0.25]), "age"),
        "float32": Atom(3, 50, gaussian.astype(np.float32)),
        "binary": random_binary(1150, 160),
        "even gaps": Atom(3, 900, gaussian[:30], np.arange(7, 900, 30)[:30]),
        "uneven gaps": Atom(3, 2**41, np.ones(skewed.size), skewed),
        "absent indices": random_binary(500, 480),
        "two values": Atom(3, 100, np.where(rng.random(100) < 0.5, -0.37, 1.91)),
        "dense zeros": Atom(3, 300, np.where(rng.random(300) < 0.1, 1.0, 0.0)),
        "background": Atom(3, 300, np.where(rng.random(300) < 0.1, 2.83, -0.0).astype("f4")),
        "decimals": Atom(3, 50, np.round(gaussian, 3)),
        "empty": Atom(0, 10, np.empty(0), np.empty(0, dtype=np.int32)),
        "nothing": Atom(0, 0, np.empty(0)),
    }


# --- exact ----------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@given(atoms())
def test_round_trip_is_exact(atom: Atom) -> None:
    message = encode(atom)
    assert same(decode(message, atom.d), atom)
    assert len(message) == encoded_size(atom)


@pytest.mark.parametrize("name", examples())
def test_examples_come_back_in_arrays_of_their_own(name: str) -> None:
    atom = examples()[name]
    message = bytearray(encode(atom))
    received = decode(memoryview(message), atom.d)
    message[:] = bytes(len(message))
    assert same(received, atom)
    assert received.values.flags.c_contiguous
    assert received.values.flags.aligned


@pytest.mark.parametrize("density", [0.0005, 0.01, 0.2, 0.5, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("d", [1, 64, 1000, 40_000])
def test_every_density_round_trips(d: int, density: float) -> None:
    sparse = random_binary(d, round(d * density))
    dense = Atom(1, d, sparse.dense())
    assert same(decode(encode(sparse), sparse.d), sparse)
    assert same(decode(encode(dense), dense.d), dense)


def test_negative_zero_survives_in_dense_and_sparse_atoms() -> None:
    values = np.zeros(100)
    values[[3, 50]] = -0.0
    dense = Atom(0, 100, values)
    sparse = Atom(0, 100, np.array([-0.0, 0.0]), np.array([1, 2]))
    assert np.signbit(decode(encode(dense), 100).values).sum() == 2
    assert np.signbit(decode(encode(sparse), 100).values).tolist() == [True, False]


def test_largest_ids_lengths_and_indices() -> None:
    last = np.array([0, MAX_LENGTH - 2, MAX_LENGTH - 1])
    a = Atom(2**63 - 1, MAX_LENGTH, np.ones(3), last)
    assert same(decode(encode(a), a.d), a)
    top = np.array([2**31 - 1], dtype=np.int32)
    a = Atom(0, 2**31, np.ones(1), top)
    assert same(decode(encode(a), a.d), a)


def test_long_constant_vectors_spend_a_bit_each() -> None:
    d = UNFOLD_LIMIT + 1
    for values in (np.ones(d, dtype=np.float32), np.zeros(d, dtype=np.float32)):
        message = encode(Atom(0, d, values))
        assert len(message) >= d // 8
        assert same(decode(message, d), Atom(0, d, values))
    full = Atom(0, d, np.ones(d, dtype=np.float32), np.arange(d, dtype=np.int32))
    assert d // 8 <= len(encode(full)) < d // 4 + 30
    assert same(decode(encode(full), full.d), full)


# --- what a sample must not get wrong --------------------------------------------------------


@st.composite
def nearly_plain(draw: st.DrawFn) -> Atom:
    """Dense float64 that other forms do not make smaller, or only just do."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.standard_normal(draw(st.sampled_from([1, 2, 50, 255, 257, 300, 700, 5000])))
    kind = draw(st.sampled_from(["gaussian", "repeated", "rounded", "single", "mixed", "constant"]))
    if kind == "repeated":
        values = rng.choice(values[:400], values.size)
    elif kind == "rounded":
        values = np.round(values, draw(st.integers(0, 8)))
    elif kind == "single":
        values = values.astype(np.float32).astype(np.float64)
    elif kind == "mixed":
        values[rng.random(values.size) < draw(st.floats(0, 1))] = 0.1
    elif kind == "constant":
        values[:] = values[0]
    scale = draw(st.sampled_from([1.0, 1e-300, 1e12, 1e300]))
    return Atom(draw(st.sampled_from([0, 127, 128, 2**35 - 1, 2**35])), values.size, scale * values)


@settings(max_examples=300, deadline=None)
@given(nearly_plain())
def test_long_atoms_round_trip_and_take_no_more_than_their_values(atom: Atom) -> None:
    message = encode(atom)
    assert same(decode(message, atom.d), atom)
    assert len(message) == encoded_size(atom) <= 25 + 8 * atom.d


# --- small ----------------------------------------------------------------------------------


def plain_sizes(atom: Atom) -> dict[str, int]:
    """Sizes of textbook encodings with the same header, computed without the code under test.

    Integers get two bytes more: one or two single rows are shorter without the two parts of a code.
    """
    values, n = atom.values, atom.values.size
    wide = values.astype(np.float64)
    exact = {"float": values.dtype.itemsize * n}
    with np.errstate(all="ignore"):
        for dtype in ("float32", "float16", "int8", "uint8", "int16"):
            narrow = wide.astype(dtype)
            if narrow.astype(np.float64).tobytes() == wide.tobytes():
                exact[dtype] = narrow.nbytes
    if n and len({number.tobytes() for number in values}) == 1:
        exact["constant"] = 1 + values.dtype.itemsize
    header = 3 + len(varint(atom.id)) + len(varint(atom.d)) + 4
    if atom.indices is None:
        return {name: header + size for name, size in exact.items()}
    header += 1 + len(varint(n))
    index_bytes = -(-(atom.d - 1).bit_length() // 8)
    lists = {"bitmap": -(-atom.d // 8), "integers": n * index_bytes + 2}
    return {
        f"{index} + {value}": header + index_size + value_size
        for index, index_size in lists.items()
        for value, value_size in exact.items()
    }


@settings(max_examples=300, deadline=None)
@given(atoms())
def test_no_plain_encoding_is_smaller(atom: Atom) -> None:
    bare = Atom(atom.id, atom.d, atom.values, atom.indices)
    size = len(encode(bare))
    assert {name: plain for name, plain in plain_sizes(bare).items() if plain < size} == {}


@pytest.mark.parametrize("name", examples())
def test_no_plain_encoding_is_smaller_on_examples(name: str) -> None:
    atom = examples()[name]
    bare = Atom(atom.id, atom.d, atom.values, atom.indices)
    assert len(encode(bare)) <= min(plain_sizes(bare).values())


@pytest.mark.parametrize(
    ("atom", "size"),
    [
        (Atom(0, 0, np.empty(0)), 9),
        (Atom(7, 1000, np.ones(3), np.array([5, 80, 400])), 18),
        (Atom(5, 256, np.random.default_rng(0).standard_normal(256)), 10 + 8 * 256),
        (Atom(5, 256, np.random.default_rng(0).standard_normal(256).astype("f4")), 10 + 4 * 256),
        (Atom(5, 256, np.arange(256.0)), 10 + 256),
        (Atom(5, 256, np.arange(256) / 100), 10 + 256),
        (Atom(5, 100_000, np.ones(100_000)), 11 + 2),
        (Atom(5, 1000, np.where(random_bits(1000), 2 / 7, -1 / 3)), 10 + 1 + 16 + 125),
    ],
)
def test_known_sizes(atom: Atom, size: int) -> None:
    assert len(encode(atom)) == size


def test_random_support_is_close_to_its_entropy() -> None:
    d, n = 100_000, 3_000
    p = n / d
    entropy_bytes = -d * (p * np.log2(p) + (1 - p) * np.log2(1 - p)) / 8
    assert entropy_bytes < len(encode(random_binary(d, n))) < 1.04 * entropy_bytes + 20


def test_dense_atom_with_many_zeros_is_sent_as_a_sparse_one() -> None:
    sparse = random_binary(10_000, 100)
    dense = Atom(sparse.id, sparse.d, sparse.dense())
    assert len(encode(dense)) == len(encode(sparse))


def test_centred_sparse_column_is_sent_as_background_and_exceptions() -> None:
    sparse = random_binary(10_000, 100)
    centred = Atom(sparse.id, sparse.d, sparse.dense() - 1.0 / 3.0)
    assert len(encode(centred)) <= len(encode(sparse)) + 9 + 7  # both values as float64


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("id", [0, 127, 128, 2**63 - 1])
@pytest.mark.parametrize("d", [1, 127, 128, 1_000])
def test_the_short_way_of_measurements_leads_to_the_same(
    monkeypatch: pytest.MonkeyPatch, dtype: type, id: int, d: int
) -> None:
    rng = np.random.default_rng(d)
    atom = Atom(id, d, (np.pi * rng.standard_normal(d)).astype(dtype))
    message, named = encode(atom), encode(Atom(id, d, atom.values, name="x"))
    assert codec._plain_atom(memoryview(message[:-4]), d) is not None
    assert same(decode(message, d), atom)
    assert len(named) == len(message) + 2  # which takes the long way, and knows the same values
    monkeypatch.setattr(codec, "_plain_head", lambda atom: None)
    monkeypatch.setattr(codec, "_plain_atom", lambda body, d: None)
    assert encode(atom) == message
    assert same(decode(message, d), atom)


@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False),
        st.floats(-1e7, 1e7),
        st.floats(-1e7, 1e7, width=32),
        st.integers(-(10**13), 10**13).map(lambda number: number / 1e6),
        st.integers(-(10**9), 10**9).map(lambda number: number / 1e3),
    )
)
def test_what_fills_its_type_is_no_short_decimal_and_no_smaller_float(value: float) -> None:
    alone = np.array([value])
    with np.errstate(over="ignore"):
        smaller = float(np.float32(value)) == value
    short = round(value, 6) == value
    if abs(value) > 2.0**-126 or value == 0.0:  # below, single precision has fewer digits
        assert _fills_its_type(alone) == (not (smaller or short))


# --- safe -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", examples())
def test_any_damaged_byte_is_noticed(name: str) -> None:
    d, message = examples()[name].d, encode(examples()[name])
    for position in range(len(message)):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(message)
            damaged[position] ^= mask
            with pytest.raises(WireError):
                decode(damaged, d)


@pytest.mark.parametrize("name", examples())
def test_truncated_and_extended_messages_are_noticed(name: str) -> None:
    d, message = examples()[name].d, encode(examples()[name])
    for length in range(len(message)):
        with pytest.raises(WireError):
            decode(message[:length], d)
    for tail in (b"\x00", b"\xff", b"\x00" * 8, message):
        with pytest.raises(WireError):
            decode(message + tail, d)


def sealed(body: bytes) -> bytes:
    """Give a body, however wrong, a checksum that is right."""
    return body + (xxh3_64_intdigest(body) & 0xFFFFFFFF).to_bytes(4, "little")


def decode_or_refuse(message: bytes, d: int) -> None:
    """A wrong message may be an atom by chance; anything else must be a WireError."""
    try:
        atom = decode(message, d)
    except WireError:
        return
    indices = atom.indices
    assert atom.d == d
    assert atom.values.size == (atom.d if indices is None else indices.size)
    if indices is not None and indices.size:
        assert indices[0] >= 0
        assert indices[-1] < atom.d
        assert (indices[1:] > indices[:-1]).all()


@settings(max_examples=300, deadline=None)
@given(atoms(max_size=20), st.data())
def test_damage_behind_a_valid_checksum_is_never_another_exception(
    atom: Atom, data: st.DataObject
) -> None:
    body = bytearray(encode(atom)[:-4])
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(1, len(body) - 1))
        body[position] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, 3))
    decode_or_refuse(sealed(bytes(body[: len(body) - cut])), atom.d)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 127))
def test_noise_behind_a_valid_start_and_checksum_is_refused(noise: bytes, d: int) -> None:
    decode_or_refuse(sealed(b"\xa2" + noise), d)
    decode_or_refuse(sealed(b"\xa2" + noise[:2] + b"\0" + varint(d) + noise[2:]), d)
    decode_or_refuse(noise, d)


@pytest.mark.parametrize("flags", [0x00, 0x08, 0x09, 0x0D, 0x19, 0x1D, 0x20, 0x40, 0x88, 0x98])
@pytest.mark.parametrize("value_byte", [0x00, 0x04, 0x80, 0x84])
def test_absurd_lengths_are_refused_before_memory_is_taken(flags: int, value_byte: int) -> None:
    start = bytes((0xA2, flags, value_byte)) + varint(1)
    for huge in (2**30, 2**45, 2**62, 2**63 - 1):
        for filling in (bytes(40), b"\x3f" * 40, b"\xff" * 40):
            tracemalloc.start()
            for lengths in (varint(huge) * 2, varint(huge) + varint(huge - 1)):
                with pytest.raises(WireError):
                    decode(sealed(start + lengths + filling), huge)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 2**20


@pytest.mark.parametrize("name", examples())
def test_an_atom_of_another_length_than_expected_is_refused(name: str) -> None:
    atom = examples()[name]
    for d in {0, 1, atom.d - 1, atom.d + 1, 8 * atom.d, MAX_LENGTH} - {atom.d}:
        with pytest.raises(WireError, match=f"has length {atom.d}, but d={d} is expected"):
            decode(encode(atom), d)


def test_a_few_bytes_cannot_take_more_memory_than_d_allows() -> None:
    constant, extras = encode(Atom(7, 2**22, np.ones(2**22))), varint(2**22) + b"\x84\0\1"
    small = sealed(b"\xa2\x20\x04" + varint(7) + varint(2) + bytes(2) + extras)
    tracemalloc.start()
    for message, d in ((constant, 100), (small, 2)):
        assert len(message) < 30
        with pytest.raises(WireError):
            decode(message, d)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**14


def test_a_signalling_nan_in_a_message_is_no_warning() -> None:
    message = sealed(b"\xa2\x00\x01" + varint(7) + varint(1) + b"\x01\x00\x80\x7f")
    with np.errstate(all="raise"):
        assert np.isnan(decode(message, 1).values).all()


def test_a_thousand_extras_are_enough() -> None:
    atom = Atom(7, 2, np.ones(2), None, np.ones(MAX_EXTRAS))
    assert same(decode(encode(atom), 2), atom)
    with pytest.raises(ValueError, match="Cannot send 1025 extras"):
        encode(Atom(7, 2, np.ones(2), None, np.ones(MAX_EXTRAS + 1)))


def test_errors_say_what_is_wrong() -> None:
    message = encode(random_binary(100, 10))
    with pytest.raises(WireError, match="Truncated message: 3 bytes"):
        decode(message[:3], 100)
    with pytest.raises(WireError, match="Not an atom"):
        decode(b"\x80" + message[1:], 100)
    with pytest.raises(WireError, match="version 1, this node reads version 2"):
        decode(b"\xa1" + message[1:], 100)
    with pytest.raises(WireError, match="checksum"):
        decode(message[:-1] + bytes((message[-1] ^ 1,)), 100)
    assert issubclass(WireError, ValueError)


@pytest.mark.parametrize(
    "atom",
    [
        Atom(-1, 1, np.ones(1)),
        Atom(0, 3, np.ones(2)),
        Atom(0, 3, np.ones(2), np.array([0])),
        Atom(0, 3, np.ones(2), np.array([1, 1])),
        Atom(0, 3, np.ones(2), np.array([2, 1])),
        Atom(0, 3, np.ones(2), np.array([-1, 1])),
        Atom(0, 3, np.ones(2), np.array([1, 3])),
        Atom(0, 3, np.ones(6)[::2]),
        Atom(0, 3, np.ones(3, dtype=np.float16)),
    ],
)
def test_malformed_atoms_are_not_sent(atom: Atom) -> None:
    with pytest.raises(ValueError, match="Cannot send"):
        encode(atom)


# --- rounded on request ---------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(atoms(), st.sampled_from(["float16", "bfloat16"]))
def test_casts_are_idempotent_and_known_to_the_owner(atom: Atom, cast: str) -> None:
    try:
        sent = as_sent(atom, cast)  # type: ignore[arg-type]
    except ValueError:
        assert np.abs(atom.values).max() > 6e4
        return
    assert same(as_sent(sent, cast), sent)  # type: ignore[arg-type]
    assert encode(atom, cast) == encode(sent)  # type: ignore[arg-type]
    assert same(decode(encode(sent), sent.d), sent)
    assert sent.values.dtype == atom.values.dtype


@pytest.mark.parametrize(("cast", "relative"), [("float16", 2.0**-11), ("bfloat16", 2.0**-8)])
def test_casts_round_to_two_bytes(cast: str, relative: float) -> None:
    atom = Atom(0, 1000, np.random.default_rng(0).uniform(0.5, 2.0, 1000))
    sent = as_sent(atom, cast)  # type: ignore[arg-type]
    assert np.max(np.abs(sent.values - atom.values) / atom.values) <= relative
    assert len(encode(atom, cast)) <= 2_010  # type: ignore[arg-type]


def test_wrong_casts_are_refused() -> None:
    with pytest.raises(ValueError, match="cast='int4': expected 'float16', 'bfloat16' or None"):
        encode(Atom(0, 1, np.ones(1)), cast="int4")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="too large for this type"):
        encode(Atom(0, 1, np.array([1e6])), cast="float16")
    assert decode(encode(Atom(0, 1, np.array([1e6])), cast="bfloat16"), 1).values[0] == 999424.0


# --- below: bits and varints ----------------------------------------------------------------


@given(st.integers(1, 62), st.data())
def test_bits_round_trip(width: int, data: st.DataObject) -> None:
    values = np.array(data.draw(st.lists(st.integers(0, 2**width - 1), max_size=30)), dtype="i8")
    packed = pack(to_bits(values, width))
    assert packed.nbytes == -(-values.size * width // 8)
    bits = unpack(packed)[: values.size * width]
    assert from_bits(bits, values.size, width).tolist() == values.tolist()


@given(st.integers(0, 2**63 - 1), st.binary(max_size=3))
def test_varints_round_trip(number: int, rest: bytes) -> None:
    reader = Reader(memoryview(varint(number) + rest))
    assert reader.varint("number") == number
    assert reader.remaining == len(rest)


# --- the atom itself ------------------------------------------------------------------------


def test_atom_counts_expands_and_multiplies() -> None:
    vector = np.arange(5.0)
    sparse = Atom(0, 5, np.array([2.0, 3.0]), np.array([1, 4]), np.array([9.0]))
    dense = Atom(0, 5, sparse.dense().astype(np.float32))
    assert (sparse.count, dense.count) == (3, 5)
    assert dense.dense().tolist() == [0.0, 2.0, 0.0, 0.0, 3.0]
    assert sparse.dot(vector) == dense.dot(vector) == 14.0
    assert repr(sparse) == "Atom(id=0, d=5, 2 nonzeros, float64, extras=[9.0])"


def test_checked_atoms_are_converted() -> None:
    atom = Atom.checked(1, 10, [1, 2], np.array([3, 7], dtype=np.uint8), [0.5], "age")
    assert atom.values.dtype == np.float64
    assert atom.extras.tolist() == [0.5]
    assert atom.indices is not None
    assert atom.indices.dtype == np.int64
    assert Atom.checked(1, 2, np.ones(4, dtype=np.float32)[::2]).values.flags.c_contiguous


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 2, [1, 2]), "id=-1"),
        ((0, -2, []), "d=-2"),
        ((0, 3, [1, 2]), "values has 2 entries"),
        ((0, 3, [1, 2], [1]), "values has 2 entries"),
        ((0, 2, [1, np.nan]), "NaN or infinity"),
        ((0, 2, ["a", "b"]), "expected real numbers"),
        ((0, 2, [[1, 2]]), "one dimension"),
        ((0, 3, [1, 2], [2, 1]), "increase strictly"),
        ((0, 3, [1, 2], [0.5, 1]), "expected integers"),
    ],
)
def test_wrong_atoms_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Atom.checked(*arguments)


def test_same_looks_at_bits_types_and_representation() -> None:
    atom = Atom(0, 2, np.array([0.0, 1.0]))
    assert same(atom, Atom(0, 2, np.array([0.0, 1.0])))
    assert not same(atom, Atom(0, 2, np.array([-0.0, 1.0])))
    assert not same(atom, Atom(0, 2, np.array([0.0, 1.0], dtype=np.float32)))
    assert not same(atom, Atom(0, 2, np.array([0.0, 1.0]), np.arange(2)))
    assert not same(atom, Atom(1, 2, np.array([0.0, 1.0])))
    assert not same(atom, Atom(0, 2, np.array([0.0, 1.0]), name="age"))
