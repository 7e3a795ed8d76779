"""The labels of classes as arrays, and back: numbers, booleans or texts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.data.promises import text_vector
from atomcast.storage.container import Arrays, text_array, texts_of


def class_arrays(classes: NDArray[Any]) -> Arrays:
    """The arrays that hold the labels of the classes.

    Raises
    ------
    ValueError
        If the labels are neither numbers nor texts.
    """
    classes = np.asarray(classes)
    if classes.dtype.kind in "biuf" and classes.dtype.itemsize <= 8:
        return {"classes": classes.astype(classes.dtype.newbyteorder("="))}
    labels = classes.tolist()
    if not all(isinstance(label, str) for label in labels):
        raise ValueError(
            f"classes of {classes.dtype} cannot be saved, such as {labels[0]!r}: fit with labels "
            "that are numbers or texts"
        )
    kept_as_objects = np.array(classes.dtype == object)
    return {"classes.text": text_array(labels), "classes.object": kept_as_objects}


def classes_in(arrays: Arrays) -> NDArray[Any]:
    """The labels of the classes, at least two, in increasing order."""
    if "classes" in arrays:
        classes = arrays["classes"]
    else:
        as_objects = bool(arrays["classes.object"])
        texts = texts_of(arrays["classes.text"])
        classes = np.array(texts, dtype=object) if as_objects else text_vector(texts)
    if classes.ndim != 1 or len(classes) < 2 or not np.all(classes[:-1] < classes[1:]):
        raise ValueError(f"two or more classes in increasing order were expected, got {classes!r}")
    return classes
