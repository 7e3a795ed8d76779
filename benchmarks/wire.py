"""How many bytes an atom takes on the wire, against what one would send otherwise.

    ATOMCAST_DATA=<folder> python benchmarks/wire.py

Two tables: whole messages with the time they take, and the indices alone under several codes.
Real data is left out, with a note, where it is not in the folder ATOMCAST_DATA.
"""

from __future__ import annotations

import io
import math
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
from atomcast.network.wire.buffer import pack_varints
from atomcast.network.wire.codec import as_sent, decode, encode, encoded_size
from atomcast.network.wire.indices import plan_indices

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


def zlib_size(data: bytes) -> int:
    """zlib, level 1, less the 6 bytes of its own header and checksum: a format would drop them."""
    return len(zlib.compress(data, 1)) - 6


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
    for argument in arguments[:100]:
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
        f"{sum(min(len(m), zlib_size(m)) for m in messages) / 1000:,.1f}",
        *(f"{sum(other) / sum(sizes):,.1f}x" for other in others),
        f"{microseconds(encode, atoms):.0f}",
        f"{microseconds(decode, messages):.0f}",
        f"{microseconds(encoded_size, atoms):.0f}",
    )


def add_index_row(table: Table, name: str, atoms: list[Atom]) -> None:
    """Total bytes of the indices, without header and values, under each code."""
    totals = np.zeros(8)
    for atom in atoms:
        assert atom.indices is not None
        d, n = atom.d, atom.indices.size
        gaps = np.diff(atom.indices, prepend=-1) - 1
        largest = int(gaps.max())
        varints = bytes(pack_varints(gaps, largest))
        bitmap = np.packbits(np.bincount(atom.indices, minlength=d).astype(bool)).tobytes()
        log_supports = math.lgamma(d + 1) - math.lgamma(n + 1) - math.lgamma(d - n + 1)
        totals += (
            4 * n,
            n * (1 if largest < 2**8 else 2 if largest < 2**16 else 4),
            len(varints),
            len(bitmap),
            zlib_size(varints),
            zlib_size(bitmap),
            plan_indices(atom.indices, d).size,
            log_supports / math.log(2) / 8,
        )
    table.add_row(name, *(f"{total:,.0f}" for total in totals))


def main() -> None:
    messages = plain_table(
        "Medians per atom: values, bytes sent, microseconds; totals: kB sent, and against others",
        *("atoms", "values", "wire", "raw", "npz", "pickle", "wire kB", "+zlib kB"),
        *("raw/wire", "npz/wire", "pickle/wire", "encode", "decode", "size"),
    )
    indices = plain_table(
        "Bytes of the indices alone, total",
        *("atoms", "int32", "fixed gaps", "varint gaps", "bitmap"),
        *("varint+zlib", "bitmap+zlib", "wire", "log2(d choose n)"),
    )
    for atom_sets in (dorothea_atoms, adult_atoms, usps_atoms, synthetic_atoms):
        try:
            for name, atoms in atom_sets():
                add_message_row(messages, name, atoms)
                if atoms[0].indices is not None:
                    add_index_row(indices, name, atoms)
        except FileNotFoundError as error:
            console.print(f"Left out, because the data is not here: {error}")
    console.print(messages)
    console.print(indices)


if __name__ == "__main__":
    main()
