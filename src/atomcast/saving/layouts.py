"""Layouts: how the fitted state of an estimator becomes arrays, and back."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from atomcast.saving.classes import class_arrays, classes_in
from atomcast.storage.container import Arrays

Atoms = tuple[NDArray[np.int64], NDArray[np.float64]]


#: Beyond so many coefficients, those that are zero are saved too: then the size of a file bounds
#: the memory that loading it takes.
UNLISTED = 1 << 27


class Layout(Protocol):
    """How the fitted state of one kind of estimator becomes arrays, and back.

    A layout whose atoms are no features says so by `atoms_are = "examples"` or "kernels"; the
    names of the latter are those of `atom_names(arrays)`.
    """

    def pack(self, estimator: Any) -> Arrays:
        """The arrays of a fitted estimator; numbers and booleans only, no objects.

        Must raise ValueError if it cannot be saved.
        """
        ...

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set the fitted attributes; must raise ValueError on arrays that make no sense."""
        ...

    def atoms(self, arrays: Arrays) -> Atoms:
        """Global ids, shape (k,), and weights, shape (k,) or (k, T), of the atoms in the model."""
        ...


class LinearLayout:
    """A linear model with few nonzero coefficients: their ids and values, and the intercept.

    Parameters
    ----------
    extras : sequence of str
        Further fitted attributes that are numbers or arrays, such as the path of a CV estimator.
    reported : tuple of str
        The same of what is good to know, and may be missing or infinite.
    """

    def __init__(self, *extras: str, reported: tuple[str, ...] = ()) -> None:
        self.extras, self.reported = extras, reported

    def pack(self, estimator: Any) -> Arrays:
        """Coefficients that are not zero, intercept, and the extras."""
        by_feature = np.asarray(estimator.coef_, dtype=np.float64).T
        used = by_feature != 0 if by_feature.ndim == 1 else by_feature.any(axis=1)
        if by_feature.size > UNLISTED:
            used = np.ones(len(by_feature), dtype=bool)
        ids = np.flatnonzero(used).astype(np.int64)
        arrays = {
            "coef.ids": ids,
            "coef.weights": by_feature[ids],
            "intercept": np.asarray(estimator.intercept_, dtype=np.float64),
        }
        reported = [name for name in self.reported if hasattr(estimator, name)]
        return arrays | {n: np.asarray(getattr(estimator, n)) for n in (*self.extras, *reported)}

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set `coef_`, `intercept_` and the extras."""
        ids, weights = self.atoms(arrays)
        if len(ids) and not 0 <= ids[0] <= ids[-1] < estimator.n_features_in_:
            raise ValueError(f"a coefficient is outside 0 ... {estimator.n_features_in_ - 1}")
        intercept = finite(arrays["intercept"], weights.shape[1:])
        _check_listed(estimator.n_features_in_, weights)
        estimator.coef_ = np.zeros((*weights.shape[1:], estimator.n_features_in_))
        estimator.coef_.T[ids] = weights
        estimator.intercept_ = intercept if intercept.ndim else float(intercept)
        further = {name: finite(arrays[name]) for name in self.extras}
        further |= {name: arrays[name] for name in self.reported if name in arrays}
        for name, array in further.items():
            if array.dtype != np.float64 or np.isnan(array).any():
                raise ValueError(f"{name} must be numbers")
            setattr(estimator, name, array.item() if array.ndim == 0 else array)

    def atoms(self, arrays: Arrays) -> Atoms:
        """The features with a coefficient that is not zero."""
        ids, weights = increasing(arrays["coef.ids"]), finite(arrays["coef.weights"])
        if weights.ndim not in self._dimensions or len(weights) != len(ids):
            raise ValueError("coefficients and their ids do not go together")
        return ids, weights

    _dimensions: ClassVar[tuple[int, ...]] = (1,)


class TargetsLayout(LinearLayout):
    """A linear model of one or more targets."""

    _dimensions = (1, 2)


class PursuitLayout(TargetsLayout):
    """The same, its residual, and what is known of its choice."""

    def pack(self, estimator: Any) -> Arrays:
        """What linear models have, the residual and the exact recovery coefficient."""
        known = [] if estimator.exact_recovery_ is None else [estimator.exact_recovery_]
        return super().pack(estimator) | {
            "residual": np.array(estimator.residual_),
            "recovery": np.array(known, dtype=np.float64),
        }

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set `residual_` and `exact_recovery_` too."""
        super().unpack(estimator, arrays)
        estimator.residual_ = float(finite(arrays["residual"], ()))
        recovery = finite(arrays["recovery"])
        estimator.exact_recovery_ = float(recovery[0]) if recovery.size else None


class LogisticLayout(LinearLayout):
    """A linear classifier: as a linear model, with a row of coefficients a class, and classes."""

    _dimensions = (2,)

    def pack(self, estimator: Any) -> Arrays:
        """What linear models have, and the classes."""
        return super().pack(estimator) | class_arrays(estimator.classes_)

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set `classes_` too."""
        super().unpack(estimator, arrays)
        estimator.classes_ = classes_in(arrays)
        check_decisions(len(estimator.coef_), estimator.classes_)


class GroupLayout:
    """A model with groups of features: as another layout has it, and the partition.

    Parameters
    ----------
    inner : Layout
        The layout of the model without its groups.
    """

    def __init__(self, inner: Layout) -> None:
        self.inner = inner

    def pack(self, estimator: Any) -> Arrays:
        """The arrays of the model, and the group and the weight of each."""
        groups = estimator.groups_
        return self.inner.pack(estimator) | {
            "groups.labels": np.asarray(groups.labels, dtype=np.int64),
            "groups.weights": np.asarray(groups.weights, dtype=np.float64),
        }

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set `groups_` too."""
        from atomcast.domains.group_ball import Groups

        self.inner.unpack(estimator, arrays)
        labels, weights = arrays["groups.labels"], finite(arrays["groups.weights"])
        groups, leaders = np.unique(labels, return_index=True)
        if labels.dtype != np.int64 or labels.shape != (estimator.n_features_in_,):
            raise ValueError("not every feature has a group")
        if not np.array_equal(groups, np.arange(len(groups))) or np.any(np.diff(leaders) <= 0):
            raise ValueError("groups are not numbered by their first features")
        if weights.shape != groups.shape or not np.all(weights > 0):
            raise ValueError("not every group has a positive weight")
        estimator.groups_ = Groups(labels, weights, leaders.astype(np.int64))

    def atoms(self, arrays: Arrays) -> Atoms:
        """The features with a coefficient that is not zero."""
        return self.inner.atoms(arrays)


def finite(array: NDArray[Any], shape: tuple[int, ...] | None = None) -> NDArray[np.float64]:
    """An array of finite float64 numbers, of a shape if one is given."""
    if array.dtype != np.float64 or not np.isfinite(array).all():
        raise ValueError(f"finite float64 numbers were expected, got {array.dtype}")
    if shape is not None and array.shape != shape:
        raise ValueError(f"an array of shape {shape} was expected, got {array.shape}")
    return array


def _check_listed(features: int, weights: NDArray[np.float64]) -> None:
    """Refuse a number of coefficients that the file does not hold, before memory is taken."""
    count = features * math.prod(weights.shape[1:])
    if count > UNLISTED and weights.size != count:
        raise ValueError(
            f"it has {features:,} features, but only {weights.size:,} of {count:,} coefficients; "
            f"models with more than {UNLISTED:,} list them all"
        )


def increasing(ids: NDArray[Any]) -> NDArray[np.int64]:
    """A vector of ids, each larger than the one before."""
    if ids.dtype != np.int64 or ids.ndim != 1 or np.any(np.diff(ids) <= 0):
        raise ValueError("increasing ids were expected")
    return ids


def check_decisions(count: int, classes: NDArray[Any]) -> None:
    """Refuse a number of decisions that does not go with the number of classes."""
    if count != (1 if len(classes) == 2 else len(classes)):
        raise ValueError(f"{count} decisions do not go with {len(classes)} classes")
