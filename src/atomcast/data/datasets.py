"""The public data sets of the paper's experiments and of our benchmarks."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.data.fetch import data_home, read_files
from atomcast.data.matrices import Matrix

__all__ = [
    "DataSet",
    "data_home",
    "load_adult",
    "load_dorothea",
    "load_letter",
    "load_usps",
]

_ADULT_FEATURES = 123
_DOROTHEA_FEATURES = 100_000
_LETTER_TRAIN = 16_000
_LETTER_NAMES = (
    "x-box y-box width high onpix x-bar y-bar x2bar y2bar xybar x2ybr xy2br x-ege xegvy y-ege yegvx"
)


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set, with a test part where it is published with one.

    Attributes
    ----------
    X : ndarray or scipy sparse of shape (rows, columns)
    y : array of shape (rows,)
    X_test, y_test : as X and y, or None
    names : tuple of str or None
        Names of the columns.
    """

    X: Matrix
    y: NDArray[Any]
    X_test: Matrix | None = None
    y_test: NDArray[Any] | None = None
    names: tuple[str, ...] | None = None


def load_adult(*, download: bool = False) -> DataSet:
    """Load Adult in its binary encoding `a9a`: does a person earn more than 50,000 a year?

    Parameters
    ----------
    download : bool
        Whether to download what is missing from `data_home()`.

    Returns
    -------
    DataSet
        `X` is CSR, 32,561 x 123, all ones; `X_test` 16,281 x 123; labels are -1 and 1 (int64).
    """
    train, test = read_files("a9a", download=download)
    X, y = _parse_svmlight(train, _ADULT_FEATURES)
    X_test, y_test = _parse_svmlight(test, _ADULT_FEATURES)
    return DataSet(X, y, X_test, y_test)


def load_dorothea(
    *, part: Literal["all", "train", "valid"] = "all", download: bool = False
) -> DataSet:
    """Load Dorothea: which compounds bind to thrombin? Few examples, many features.

    Parameters
    ----------
    part : {"all", "train", "valid"}
        "train" has 800 rows, "valid" 350; "all" is one above the other, as in the paper.
    download : bool
        Whether to download what is missing from `data_home()`.

    Returns
    -------
    DataSet
        `X` is CSC, 1,150 x 100,000 with 1,045,512 ones (float64); `y` is -1.0 and 1.0. There is
        no test part, because its labels were never published.
    """
    if part not in ("all", "train", "valid"):
        raise ValueError(f'part={part!r} is not accepted: use "all", "train" or "valid"')
    train, train_labels, valid, valid_labels = read_files("dorothea", download=download)
    chosen = {
        "all": [(train, train_labels), (valid, valid_labels)],
        "train": [(train, train_labels)],
        "valid": [(valid, valid_labels)],
    }[part]
    X = sparse.vstack([_parse_ones(data, _DOROTHEA_FEATURES) for data, _ in chosen]).tocsc()
    y = np.concatenate([np.array(labels.split(), dtype=np.float64) for _, labels in chosen])
    return DataSet(X, y)


def load_usps(*, download: bool = False) -> DataSet:
    """Load USPS: handwritten zip code digits.

    What is missing from `data_home()` is downloaded if `download` says so.

    Returns
    -------
    DataSet
        `X` is dense, 7,291 x 256 grey levels in [-1, 1] (float64); `X_test` 2,007 x 256; labels
        are 0 to 9 (int64).
    """
    train, test = (
        np.array(content.split(), dtype=np.float64).reshape(-1, 257)
        for content in read_files("usps", download=download)
    )
    return DataSet(
        X=np.ascontiguousarray(train[:, 1:]),
        y=train[:, 0].astype(np.int64),
        X_test=np.ascontiguousarray(test[:, 1:]),
        y_test=test[:, 0].astype(np.int64),
    )


def load_letter(*, download: bool = False) -> DataSet:
    """Load Letter Recognition: which of 26 capital letters?

    What is missing from `data_home()` is downloaded if `download` says so.

    Returns
    -------
    DataSet
        `X` is dense, 16,000 x 16, the integers 0 to 15 divided by 15 (float64); `X_test`
        4,000 x 16 (the split its authors used); labels are "A" to "Z".
    """
    (content,) = read_files("letter", download=download)
    table = np.array([line.split(",") for line in content.decode().splitlines()])
    X, y = table[:, 1:].astype(np.float64) / 15, table[:, 0].astype("<U1")
    return DataSet(
        X=X[:_LETTER_TRAIN],
        y=y[:_LETTER_TRAIN],
        X_test=X[_LETTER_TRAIN:],
        y_test=y[_LETTER_TRAIN:],
        names=tuple(_LETTER_NAMES.split()),
    )


def _parse_svmlight(content: bytes, n_features: int) -> tuple[Matrix, NDArray[np.int64]]:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(io.BytesIO(content), n_features=n_features)
    # scikit-learn reads 64-bit indices, which its own SVMs refuse.
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y.astype(np.int64)


def _parse_ones(content: bytes, n_features: int) -> Matrix:
    """Read a binary matrix of which every line lists the columns of its ones, counted from 1."""
    columns = np.fromstring(content.decode("ascii"), dtype=np.int32, sep=" ") - 1
    # Numbers per line without a loop over lines: where a number starts, and in which line.
    characters = np.frombuffer(content, dtype=np.uint8)
    inside = characters > ord(" ")
    starts = np.flatnonzero(inside & ~np.concatenate(([False], inside[:-1])))
    line_ends = np.flatnonzero(characters == ord("\n"))
    indptr = np.concatenate(([0], np.searchsorted(starts, line_ends))).astype(np.int32)
    shape = (len(line_ends), n_features)
    return sparse.csr_matrix((np.ones(len(columns)), columns, indptr), shape=shape)
