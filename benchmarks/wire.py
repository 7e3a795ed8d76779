"""How many bytes an atom takes on the wire, against what one would send otherwise.

    ATOMCAST_DATA=<folder> python benchmarks/wire.py

Two tables: whole messages with the time they take, and against a general compressor over plain
parts: the gaps between indices as varints, or a bitmap, and the values with their bytes transposed.
Real data is left out, with a note, where it is not in the folder ATOMCAST_DATA, and so are the
compressors zstandard and blosc2 where they are not installed.
"""

from __future__ import annotations

import importlib.util
import io
import pickle
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import Any, Literal

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from scipy import sparse

from atomcast.data import load_adult, load_dorothea, load_usps
from atomcast.messages.atom import Atom, same
from atomcast.network.wire.codec import as_sent, decode, encode, encoded_size, varint

AtomSet = tuple[str, list[Atom]]
console = Console(width=180)


# --- what is sent ---------------------------------------------------------------------------


def dorothea_atoms() -> Iterator[AtomSet]:
    data = load_dorothea()
    X = _sorted_csc(data.X)
    nonempty = np.flatnonzero(np.diff(X.indptr))
    chosen = np.random.default_rng(0).choice(nonempty, 500, replace=False)
    yield "Dorothea columns, random", _columns(X, chosen)
    strongest = np.argsort(-np.abs(X.T @ (data.y - data.y.mean())))[:500]
    yield "Dorothea columns, strongest", _columns(X, strongest)


def adult_atoms() -> Iterator[AtomSet]:
    X = load_adult().X
    yield "a9a columns (all 123)", _columns(_sorted_csc(X), range(X.shape[1]))
    chosen = np.random.default_rng(0).choice(X.shape[0], 500, replace=False)
    yield "a9a rows", _columns(_sorted_csc(X.T), chosen)


def usps_atoms() -> Iterator[AtomSet]:
    X = np.asarray(load_usps().X)
    chosen = np.random.default_rng(0).choice(X.shape[0], 500, replace=False)
    yield "USPS rows (3 decimals)", [Atom(int(i), X.shape[1], X[i]) for i in chosen]


def synthetic_atoms() -> Iterator[AtomSet]:
    rng, d = np.random.default_rng(0), 10_000
    yield "Gaussian d=1,000", [Atom(i, 1000, rng.standard_normal(1000)) for i in range(200)]
    singles = rng.standard_normal((200, 1000)).astype(np.float32)
    yield "Gaussian d=1,000, float32", [Atom(i, 1000, row) for i, row in enumerate(singles)]
    counts = rng.negative_binomial(1, 0.2, (200, 1000)).astype(float)
    yield "counts, mean 4", [Atom(i, 1000, row) for i, row in enumerate(counts)]
    codes = rng.integers(0, 12, (200, 1000)).astype(float)
    yield "codes of 12 categories", [Atom(i, 1000, row) for i, row in enumerate(codes)]
    prices = np.round(rng.lognormal(3, 1, (200, 1000)), 2)
    yield "prices, 2 decimals", [Atom(i, 1000, row) for i, row in enumerate(prices)]
    yield "tf-idf of Zipf words", _tf_idf(rng)
    yield "Gaussian d=256", [Atom(i, 256, rng.standard_normal(256)) for i in range(200)]
    gaussian = [Atom(i, d, rng.standard_normal(d)) for i in range(200)]
    yield "Gaussian d=10,000", gaussian
    yield "same, cast to float16", [as_sent(atom, "float16") for atom in gaussian]
    binary = rng.random((200, d)) < 0.1
    scaled = (binary - binary.mean(axis=1, keepdims=True)) / binary.std(axis=1, keepdims=True)
    yield "standardised binary", [Atom(i, d, row) for i, row in enumerate(scaled)]
    matrix = sparse.random(100_000, 200, 0.01, random_state=0, data_rvs=rng.standard_normal)
    yield "Gaussian, 1 % of 100,000", _columns(_sorted_csc(matrix), range(200))
    ones = [np.sort(rng.choice(1150, 160, replace=False)).astype(np.int32) for _ in range(200)]
    yield "binary, 160 of 1,150", [Atom(i, 1150, np.ones(160), on) for i, on in enumerate(ones)]
    yield "Gaussian d=1,000,000", [Atom(i, 10**6, rng.standard_normal(10**6)) for i in range(5)]


def _tf_idf(rng: np.random.Generator) -> list[Atom]:
    """Columns of 2,000 documents of 100 words each, weighted and scaled as a search engine does."""
    words = np.minimum(rng.zipf(1.3, (2000, 100)), 5000) - 1
    rows = np.repeat(np.arange(2000), 100)
    tf = sparse.csr_matrix((np.ones(rows.size), (rows, words.ravel())), shape=(2000, 5000))
    idf = np.log(2001 / (1 + np.bincount(tf.indices, minlength=5000))) + 1
    weighted = tf @ sparse.diags(idf)
    norms = np.sqrt(weighted.multiply(weighted).sum(axis=1)).A1
    return _columns(_sorted_csc(sparse.diags(1 / norms) @ weighted), range(200))


def _sorted_csc(matrix: sparse.spmatrix) -> sparse.csc_matrix:
    columns = sparse.csc_matrix(matrix)
    columns.sort_indices()
    return columns


def _columns(matrix: sparse.csc_matrix, chosen: Iterable[int]) -> list[Atom]:
    """One sparse atom per column, as a node would cut it from its shard."""
    atoms = []
    for j in chosen:
        part = slice(matrix.indptr[j], matrix.indptr[j + 1])
        atoms.append(Atom(int(j), matrix.shape[0], matrix.data[part], matrix.indices[part]))
    return atoms


# --- what one would send otherwise ----------------------------------------------------------


def raw_size(atom: Atom) -> int:
    """All d values as float64, as an MPI_Bcast of an array would send them."""
    return 8 * atom.d


def npz_size(atom: Atom) -> int:
    """numpy.savez of a dense atom, scipy.sparse.save_npz (compressed) of a sparse one."""
    file = io.BytesIO()
    if atom.indices is None:
        np.savez(file, atom.values)
    else:
        indptr = np.array([0, atom.indices.size], dtype=atom.indices.dtype)
        column = sparse.csc_matrix((atom.values, atom.indices, indptr), shape=(atom.d, 1))
        sparse.save_npz(file, column)
    return len(file.getvalue())


def pickle_size(atom: Atom) -> int:
    """Pickle, protocol 5, of the arrays."""
    return len(pickle.dumps((atom.id, atom.d, atom.values, atom.indices), protocol=5))


def plain_parts(atom: Atom) -> tuple[bytes, int]:
    """What a compressor gets, and the bytes of id, d, n and two codes that go before it."""
    values = atom.values.view(np.uint8).reshape(atom.values.size, -1).T.tobytes()
    if atom.indices is None:
        return values, len(varint(atom.id) + varint(atom.d)) + 2
    gaps = b"".join(map(varint, (np.diff(atom.indices, prepend=-1) - 1).tolist()))
    bitmap = np.packbits(np.bincount(atom.indices, minlength=atom.d).astype(bool)).tobytes()
    return min(gaps, bitmap, key=len) + values, len(
        varint(atom.id) + varint(atom.d) + varint(atom.values.size)
    ) + 2


def compressors() -> dict[str, Callable[[bytes], bytes]]:
    """Those installed, as functions of bytes."""
    found: dict[str, Callable[[bytes], bytes]] = {}
    found["zlib 1"] = lambda data: zlib.compress(data, 1)[6:]  # no header and checksum of its own
    if importlib.util.find_spec("zstandard"):
        import zstandard

        options = {"write_content_size": False, "write_checksum": False}
        found["zstd 3"] = zstandard.ZstdCompressor(level=3, **options).compress
    if importlib.util.find_spec("blosc2"):
        import blosc2

        options = {"codec": blosc2.Codec.ZSTD, "filters": [blosc2.Filter.NOFILTER], "nthreads": 1}
        found["blosc2"] = lambda data: blosc2.compress2(data, typesize=1, **options)
    return found


# --- the tables -----------------------------------------------------------------------------


def plain_table(title: str, *headings: str) -> Table:
    """A table that can be pasted into a text: first column left, numbers right, no frame."""
    table = Table(title=title, box=box.SIMPLE, pad_edge=False, title_justify="left")
    for heading in headings:
        justify: Literal["left", "right"] = "right" if table.columns else "left"
        table.add_column(heading, justify=justify, no_wrap=True)
    return table


def microseconds(function: Callable[[Any], object], arguments: Sequence[Any]) -> float:
    """Median over the arguments of the best of seven calls each."""
    best = []
    for argument in arguments[:30]:
        times = []
        for _ in range(7):
            start = time.perf_counter()
            function(argument)
            times.append(time.perf_counter() - start)
        best.append(min(times))
    return 1e6 * median(best)


def add_message_row(table: Table, name: str, atoms: list[Atom]) -> None:
    messages = [encode(atom) for atom in atoms]
    assert all(same(decode(m, atom.d), atom) for m, atom in zip(messages, atoms, strict=True))
    sizes = [len(message) for message in messages]
    others = [[size(atom) for atom in atoms] for size in (raw_size, npz_size, pickle_size)]
    table.add_row(
        name,
        f"{median(atom.count for atom in atoms):,.0f}",
        f"{median(sizes):,.0f}",
        *(f"{median(other):,.0f}" for other in others),
        f"{sum(sizes) / 1000:,.1f}",
        *(f"{sum(other) / sum(sizes):,.1f}x" for other in others),
        f"{microseconds(encode, atoms):.0f}",
        f"{microseconds(lambda message: decode(message, atoms[0].d), messages):.0f}",
        f"{microseconds(encoded_size, atoms):.0f}",
    )


def add_compressor_row(table: Table, name: str, atoms: list[Atom]) -> None:
    """Total kB of the messages, and of each compressor with the same checksum; with its time."""
    parts = [plain_parts(atom) for atom in atoms]
    row = [f"{sum(map(encoded_size, atoms)) / 1000:,.1f} ({microseconds(encode, atoms):.0f})"]
    for compress in compressors().values():
        total = sum(head + 4 + min(len(data), len(compress(data))) for data, head in parts)
        spent = microseconds(compress, [data for data, _ in parts])
        row.append(f"{total / 1000:,.1f} ({spent:.0f})")
    table.add_row(name, *row)


def main() -> None:
    messages = plain_table(
        "Medians per atom: values, bytes sent, microseconds; totals: kB sent, and against others",
        *("atoms", "values", "wire", "raw", "npz", "pickle", "wire kB"),
        *("raw/wire", "npz/wire", "pickle/wire", "encode", "decode", "size"),
    )
    compressed = plain_table(
        "Total kB, and microseconds to encode or compress the median atom",
        *("atoms", "wire", *compressors()),
    )
    for atom_sets in (dorothea_atoms, adult_atoms, usps_atoms, synthetic_atoms):
        try:
            for name, atoms in atom_sets():
                add_message_row(messages, name, atoms)
                if atoms[0].d < 10**6:
                    add_compressor_row(compressed, name, atoms)
        except FileNotFoundError as error:
            console.print(f"Left out, because the data is not here: {error}")
    console.print(messages)
    console.print(compressed)


if __name__ == "__main__":
    main()
