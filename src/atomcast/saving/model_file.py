"""Fitted models as files: safetensors, readable anywhere, loaded without executing anything.

An estimator is saved by a `Layout`, which says what its arrays are. To make another estimator
savable, add a line to `LAYOUTS` (or call `register`); nothing else here has to change.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from atomcast import __version__
from atomcast._checks import check_count
from atomcast.data.prepared import Prepared
from atomcast.saving.boosting_layout import BoostingLayout, StumpSumLayout
from atomcast.saving.certificate import (
    Certificate,
    certificate_header,
    certificate_in,
    certificate_of,
    disclosure_arrays,
)
from atomcast.saving.dictionary_layout import DictionaryLayout, LearnedLayout
from atomcast.saving.layouts import (
    GroupLayout,
    Layout,
    LinearLayout,
    LogisticLayout,
    PursuitLayout,
    TargetsLayout,
)
from atomcast.saving.parameters import decoded, encoded, is_saved
from atomcast.storage.container import (
    WITH_PREPARATION,
    Arrays,
    ModelFile,
    json_object,
    read_model_file,
    text_array,
    texts_of,
    write_model_file,
)

__all__ = ["Certificate", "Layout", "load_model", "register", "save_model"]

#: What tells the arrays of the estimator itself from those that every model has.
PREFIX = "model."


#: How estimators are saved, by the name in the file, which can name one of these and nothing else.
#: "module:object" is imported when it is needed.
LAYOUTS: dict[str, Layout | str] = {
    "Lasso": TargetsLayout(reported=("beta_", "alpha_")),
    "LassoCV": TargetsLayout("beta_", "betas_", "mse_path_", reported=("alpha_", "scores_")),
    "SparseLogisticRegression": LogisticLayout(reported=("beta_", "C_")),
    "SparseLogisticRegressionCV": LogisticLayout(
        "beta_", "betas_", "loss_path_", reported=("C_", "scores_")
    ),
    "GroupLasso": GroupLayout(LinearLayout(reported=("beta_", "alpha_"))),
    "GroupLogisticRegression": GroupLayout(LogisticLayout(reported=("beta_", "C_"))),
    "MatchingPursuit": PursuitLayout(),
    "SparseCoder": DictionaryLayout(),
    "DictionaryLearning": LearnedLayout(),
    "L1AdaBoost": BoostingLayout(),
    "L1BoostRegressor": StumpSumLayout(),
    "KernelSVC": "atomcast.saving.kernel_layout:LAYOUT",
    "KernelSVR": "atomcast.saving.kernel_layout:REGRESSION",
    "SparseModel": "atomcast.saving.composed_layout:LAYOUT",
    "StructuredSVM": "atomcast.saving.structured_layout:LAYOUT",
    "MultipleKernelClassifier": "atomcast.saving.views_layout:LAYOUT",
    "MultipleKernelRegressor": "atomcast.saving.views_layout:LAYOUT",
}
#: Where the classes are of estimators that are not public names of this package.
ELSEWHERE: dict[str, str] = {}


def register(name: str, estimator: str, layout: Layout | str) -> None:
    """Make an estimator savable.

    Parameters
    ----------
    name : str
        The name of its class, which identifies it in files.
    estimator : str
        Where the class is, "module:Class".
    layout : Layout or str
        How its fitted state becomes arrays; "module:object" is imported when it is needed.
    """
    LAYOUTS[name], ELSEWHERE[name] = layout, estimator


def _named(reference: str) -> Any:
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def _check_known(name: Any) -> None:
    if not isinstance(name, str) or name not in LAYOUTS:
        raise ValueError(
            f"there is no way to save or load a model of {name!r}; known are "
            f"{', '.join(sorted(LAYOUTS))} (others: atomcast.saving.model_file.register)"
        )


def _class_of(name: Any) -> Any:
    """The class of the estimator with this name."""
    _check_known(name)
    return _named(ELSEWHERE.get(name, f"atomcast:{name}"))


def layout_of(name: Any) -> Layout:
    """The layout of the estimator with this name."""
    _check_known(name)
    layout = LAYOUTS[name]
    return cast(Layout, _named(layout)) if isinstance(layout, str) else layout


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator to a safetensors file.

    Saved are the class name, parameters, feature names, fitted arrays, the certificate of the fit
    and the account of what was sent. Parameters that are no plain values (a cluster, callbacks)
    are described, not saved: a loaded estimator has their defaults.

    Parameters
    ----------
    estimator : fitted estimator
        Any of this package, but for kernel machines with a function of yours, `L1AdaBoost` over a
        list of fitted classifiers, `StructuredSVM` with outputs of yours, and `SparseModel` with a
        loss or a domain of yours, which cannot be saved without code.
    path : path
        Replaced if it exists; ".safetensors" is the usual suffix.

    Examples
    --------
    >>> from atomcast import Lasso, load_model, save_model
    >>> model = Lasso(beta=1.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> save_model(model, "model.safetensors")  # doctest: +SKIP
    >>> load_model("model.safetensors").predict([[3.0]])  # doctest: +SKIP
    """
    from sklearn.utils.validation import check_is_fitted

    name = type(estimator).__name__
    if type(estimator) is not _class_of(name):
        raise ValueError(f"{type(estimator)!r} is another class than the known {name}")
    check_is_fitted(estimator, "n_features_in_")
    certificate, layout = certificate_of(estimator), layout_of(name)
    parameters = estimator.get_params(deep=False).items()
    apart = getattr(layout, "holds", ())
    header = {
        "atomcast": __version__,
        "estimator": name,
        "parameters": {k: encoded(v) for k, v in parameters if k not in apart},
        "n_features_in": int(estimator.n_features_in_),
        "certificate": certificate and certificate_header(certificate),
    }
    arrays = {PREFIX + key: array for key, array in layout.pack(estimator).items()}
    if certificate is not None:
        arrays |= disclosure_arrays(certificate)
    if hasattr(estimator, "feature_names_in_"):
        arrays["feature_names"] = text_array(estimator.feature_names_in_)
    if hasattr(estimator, "preparation_"):
        arrays["preparation"] = text_array(json.dumps(p.plain()) for p in estimator.preparation_)
        header["schema"] = WITH_PREPARATION
    write_model_file(path, header, arrays)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load an estimator from a file written by `save_model`, executing nothing from it.

    Returns
    -------
    fitted estimator
        It predicts exactly as the saved one did. Instead of `result_`, which is not saved whole,
        it has `certificate_`: objective, gap, rounds, status, and what was sent (`Certificate`).

    Raises
    ------
    FileNotFoundError, ValueError
        If the file does not exist; if it is damaged, foreign, or of another schema version.
    """
    return estimator_from(read_model_file(path), str(path))


def estimator_from(file: ModelFile, path: str) -> Any:
    """The estimator that a model file describes; `path` is for messages."""
    header = file.header
    with making_sense(path):
        estimator_class = _class_of(header.get("estimator"))
        parameters = json_object(header, "parameters")
        values = {k: decoded(v) for k, v in parameters.items() if is_saved(v)}
        estimator = estimator_class(**values)
        estimator.n_features_in_ = feature_count(file)
        names = feature_names(file)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        prepared = preparation_in(file)
        if prepared is not None:
            estimator.preparation_ = prepared
        certificate = certificate_in(file)
        if certificate is not None:
            estimator.certificate_ = certificate
            estimator.dual_gap_ = certificate.gap
            estimator.n_iter_ = certificate.rounds
        layout_of(header["estimator"]).unpack(estimator, _model_arrays(file))
    return estimator


@contextmanager
def making_sense(path: str) -> Iterator[None]:
    """Turn whatever goes wrong with content that nobody would write into one ValueError."""
    try:
        yield
    except ImportError:
        raise
    except KeyError as error:
        raise ValueError(f"{path} does not describe a usable model: no {error} in it") from error
    except Exception as error:
        raise ValueError(f"{path} does not describe a usable model: {error}") from error


def _model_arrays(file: ModelFile) -> Arrays:
    return {k.removeprefix(PREFIX): v for k, v in file.arrays.items() if k.startswith(PREFIX)}


def atoms_in(file: ModelFile) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Global ids and weights, which are not zero, of the atoms of the model in a file."""
    ids, weights = layout_of(file.header.get("estimator")).atoms(_model_arrays(file))
    used = weights != 0 if weights.ndim == 1 else weights.any(axis=1)
    return ids[used], weights[used]


def feature_count(file: ModelFile) -> int:
    """How many features the model in a file has."""
    return check_count("n_features_in", file.header["n_features_in"], "features of the model", 0)


def atoms_axis(name: Any) -> int:
    """Whether a node of the estimator with this name holds columns (1) or rows (0)."""
    return 0 if atoms_are(name) == "examples" else 1


def atoms_are(name: Any) -> str:
    """What the atoms of the estimator with this name are."""
    return str(getattr(layout_of(name), "atoms_are", "features"))


def atom_names(file: ModelFile) -> list[str] | None:
    """The names of all atoms of the model in a file, if they had names."""
    layout = layout_of(file.header.get("estimator"))
    if hasattr(layout, "atom_names"):
        return list(layout.atom_names(_model_arrays(file)))
    return feature_names(file) if atoms_are(file.header["estimator"]) == "features" else None


def preparation_in(file: ModelFile) -> tuple[Prepared, ...] | None:
    """How each party prepared its table, which makes the features; None if none did."""
    if "preparation" not in file.arrays:
        return None
    parties = texts_of(file.arrays["preparation"])
    prepared = tuple(Prepared.of(json.loads(party)) for party in parties)
    names = [name for party in prepared for name in party.names]
    if names != feature_names(file):
        raise ValueError("the preparation of its tables does not make its features")
    return prepared


def feature_names(file: ModelFile) -> list[str] | None:
    """The names of all features, if they had names."""
    if "feature_names" not in file.arrays:
        return None
    names = texts_of(file.arrays["feature_names"])
    if len(names) != feature_count(file):
        raise ValueError(f"{len(names)} names for {feature_count(file)} features")
    return names
