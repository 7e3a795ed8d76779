"""Reading svmlight / LIBSVM text files: a label, then index:value pairs, on every line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from atomcast.data.matrices import Matrix
from atomcast.data.parts import Format, Part, ReadOptions
from atomcast.data.promises import check_shape


def load_svmlight(path: Path, n_features: int | None = None) -> tuple[Matrix, NDArray[np.float64]]:
    """Return the matrix (CSR, rows x columns) and the labels (rows,) of a svmlight file."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(path), n_features=n_features)
    if n_features is None:  # then the largest index says how many there are
        check_shape(X.shape, path)
    # scikit-learn reads 64-bit indices, which liblinear, libsvm and others refuse.
    if max(X.nnz, *X.shape) <= np.iinfo(np.int32).max:
        X.indices = X.indices.astype(np.int32)
        X.indptr = X.indptr.astype(np.int32)
    return X, y


def _read(path: Path, options: ReadOptions) -> Part:
    return Part(load_svmlight(path, options.n_features)[0])


SVMLIGHT = Format("svmlight", _read)
