"""The estimators of `atomcast fit`.

An estimator is a function without a body: its parameters are those of the estimator that users
may set on the command line, and its docstring is the help. Parts, target, network, solver and
output are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Annotated, Any, Literal

import typer


@dataclass(frozen=True)
class Recipe:
    """An estimator as a command.

    Parameters
    ----------
    make : callable
        Returns the estimator; its parameters are options, its docstring is the help.
    axis : {0, 1}
        Whether a node holds rows (examples, 0) or columns (features, 1).
    numeric_target : bool
        Whether the target must be numbers; otherwise labels of any kind.
    vectors : tuple of str
        Options that name files with vectors, which `fit` is given under the same names.
    signals : None, "target" or "parts"
        Where the signals are, if the estimator codes signals.
    """

    make: Callable[..., Any]
    axis: int = 1
    numeric_target: bool = True
    vectors: tuple[str, ...] = ()
    signals: Literal["target", "parts"] | None = None


#: Commands by name.
ESTIMATORS: dict[str, Recipe] = {}


def fits(estimator: str, **more: Any) -> Callable[[Callable[..., None]], Callable[..., Any]]:
    """Make a command of the public estimator with this name; `more` goes to its `Recipe`."""

    def enter(options: Callable[..., None]) -> Callable[..., Any]:
        @wraps(options)
        def make(**given: Any) -> Any:
            import atomcast

            for other in {"alpha", "C"} & given.keys():
                if {"beta", other} <= given.keys() and given["beta"] is given[other] is None:
                    raise ValueError(
                        f"--beta is missing: give a radius, or a penalty by --{other}; "
                        "lasso-cv and logistic-cv choose one by cross-validation"
                    )
            if "residual" in given:  # for --tol is the tolerance of the solver
                given["tol"] = given.pop("residual")
            for name in _READ.keys() & given.keys():
                given[name] = _READ[name](given[name])
            return getattr(atomcast, estimator)(**given)

        ESTIMATORS[options.__name__.replace("_", "-")] = Recipe(make, **more)
        return make

    return enter


Beta = Annotated[
    float | None,
    typer.Option(
        help="Bound on the sum of absolute weights: the larger, the more features.",
        show_default=False,
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(help="Instead of --beta: the penalty, as in scikit-learn.", show_default=False),
]
LossCost = Annotated[
    float | None,
    typer.Option(
        "--C", help="Instead of --beta: what losses cost, as in scikit-learn.", show_default=False
    ),
]
Positive = Annotated[bool, typer.Option("--positive", help="No weight may be negative.")]
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="How much each row counts: a vector, or a table's FILE:COLUMN."
    ),
]
Scoring = Annotated[
    str | None, typer.Option(help="What to choose by, as scikit-learn knows it: roc_auc, r2, ...")
]
WEIGHTED = ("sample_weight",)
Intercept = Annotated[bool, typer.Option("--intercept/--no-intercept", help="Fit a constant too.")]
Balanced = Annotated[
    bool, typer.Option("--balanced", help="Let all classes count alike, however many rows each.")
]
BetaCount = Annotated[int, typer.Option(help="How many radii to try.")]
Folds = Annotated[int, typer.Option("--folds", help="Folds of the cross-validation.")]
GroupsFile = Annotated[
    str,
    typer.Option(
        metavar="GROUPS",
        help="sources: the columns of each file are a group; or a JSON file with a list of lists "
        "of column names or numbers.",
    ),
]


@fits("Lasso", vectors=WEIGHTED)
def lasso(
    beta: Beta = None,
    alpha: Alpha = None,
    positive: Positive = False,
    fit_intercept: Intercept = True,
    sample_weight: Weights = None,
) -> None:
    """Least squares with few features: ||y - X w - b||^2 subject to ||w||_1 <= beta."""


@fits("LassoCV", vectors=WEIGHTED)
def lasso_cv(
    n_betas: BetaCount = 30,
    cv: Folds = 5,
    scoring: Scoring = None,
    positive: Positive = False,
    fit_intercept: Intercept = True,
    sample_weight: Weights = None,
) -> None:
    """Least squares with few features, as many as cross-validation likes best."""


@fits("SparseLogisticRegression", numeric_target=False, vectors=WEIGHTED)
def logistic(
    beta: Beta = None,
    C: LossCost = None,
    fit_intercept: Intercept = True,
    class_weight: Balanced = False,
    sample_weight: Weights = None,
) -> None:
    """Logistic regression with few features, for two or more classes: ||w||_1 <= beta."""


@fits("SparseLogisticRegressionCV", numeric_target=False, vectors=WEIGHTED)
def logistic_cv(
    n_betas: BetaCount = 20,
    cv: Folds = 5,
    scoring: Scoring = None,
    fit_intercept: Intercept = True,
    class_weight: Balanced = False,
    sample_weight: Weights = None,
) -> None:
    """Logistic regression with few features, as many as cross-validation likes best."""


@fits("GroupLasso", vectors=WEIGHTED)
def group_lasso(
    beta: Beta = None,
    alpha: Alpha = None,
    groups: GroupsFile = "sources",
    fit_intercept: Intercept = True,
    sample_weight: Weights = None,
) -> None:
    """Least squares with few groups of features, by default the columns of few files."""


@fits("GroupLogisticRegression", numeric_target=False, vectors=WEIGHTED)
def group_logistic(
    beta: Beta = None,
    C: LossCost = None,
    groups: GroupsFile = "sources",
    fit_intercept: Intercept = True,
    class_weight: Balanced = False,
    sample_weight: Weights = None,
) -> None:
    """Logistic regression for two classes with few groups of features."""


AtomCount = Annotated[int | None, typer.Option(help="How many features, or atoms a signal.")]
Radius = Annotated[
    float | None, typer.Option(help="Bound on the sum of absolute weights of each signal.")
]


@fits("MatchingPursuit", vectors=WEIGHTED)
def matching_pursuit(
    n_nonzero: AtomCount = None,
    residual: Annotated[
        float | None, typer.Option(help="Stop at this squared norm of the residual.")
    ] = None,
    orthogonal: Annotated[
        bool, typer.Option("--orthogonal/--plain", help="Fit all weights again in each round.")
    ] = True,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Divide scores by the lengths of the columns.")
    ] = False,
    fit_intercept: Intercept = True,
    sample_weight: Weights = None,
) -> None:
    """Least squares with few features, each the one that explains most of the residual."""


@fits("SparseCoder", axis=0, signals="target")
def sparse_coder(beta: Radius = None, n_nonzero: AtomCount = None) -> None:
    """Codes of the signals in --target, rows of a matrix, by atoms: the rows of the parts."""


@fits("DictionaryLearning", axis=0, signals="parts")
def dictionary_learning(
    n_components: Annotated[int, typer.Option(help="How many elements the dictionary has.")],
    beta: Radius = None,
    n_nonzero: AtomCount = None,
    max_iter: Annotated[int, typer.Option(help="How many times to code all signals.")] = 30,
) -> None:
    """A dictionary for the signals that are the rows of the parts; its elements live on --nodes."""


MostEstimators = Annotated[int | None, typer.Option(help="At most so many.")]


@fits("L1AdaBoost", numeric_target=False, vectors=WEIGHTED)
def boosting(
    temperature: Annotated[
        float, typer.Option(help="The smaller, the closer the fit, and the more stumps.")
    ] = 0.05,
    base: Annotated[
        str, typer.Option(help="stumps over the features, or matrix: the columns themselves.")
    ] = "stumps",
    n_estimators: MostEstimators = None,
    sample_weight: Weights = None,
) -> None:
    """Boosting: the best convex combination of decision stumps, for two classes."""


@fits("L1BoostRegressor", vectors=WEIGHTED)
def boosting_regressor(
    beta: Beta = None,
    alpha: Alpha = None,
    fit_intercept: Intercept = True,
    n_estimators: MostEstimators = None,
    sample_weight: Weights = None,
) -> None:
    """Boosting for numbers: the best sum of decision stumps, by least squares."""


KernelName = Annotated[
    str, typer.Option(help="rbf, linear, poly, laplacian, sigmoid or precomputed.")
]
GammaName = Annotated[
    str, typer.Option(help="Of the kernel: mean-distance, scale, auto, or a number.")
]
Degree = Annotated[int, typer.Option(help="Of the polynomial kernel.")]
Constant = Annotated[float, typer.Option(help="The constant in the polynomial kernel.")]


@fits("KernelSVC", axis=0, numeric_target=False, vectors=WEIGHTED)
def kernel_svm(
    C: Annotated[float, typer.Option("--C", help="What margin errors cost.")] = 1.0,
    kernel: KernelName = "rbf",
    gamma: GammaName = "mean-distance",
    degree: Degree = 3,
    coef0: Constant = 0.0,
    multi_class: Annotated[
        str, typer.Option(help="one-vs-one, one-vs-rest, direct (one machine) or auto.")
    ] = "auto",
    class_weight: Balanced = False,
    sample_weight: Weights = None,
) -> None:
    """A kernel support vector machine; here a file holds the rows of a node, with all columns."""


@fits("KernelSVR", axis=0, vectors=WEIGHTED)
def kernel_svr(
    C: Annotated[float, typer.Option("--C", help="What errors cost.")] = 1.0,
    epsilon: Annotated[float, typer.Option(help="Errors up to this cost nothing.")] = 0.1,
    kernel: KernelName = "rbf",
    gamma: GammaName = "mean-distance",
    degree: Degree = 3,
    coef0: Constant = 0.0,
    sample_weight: Weights = None,
) -> None:
    """Kernel regression within a tube; here a file holds the rows of a node, with all columns."""


Lengths = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="How many rows each sequence has, counted through the files: a vector, or a table's "
        "FILE:COLUMN.",
    ),
]


@fits("StructuredSVM", axis=0, numeric_target=False, vectors=("lengths", *WEIGHTED))
def structured_svm(
    model: Annotated[
        str, typer.Option(help="What is told: multiclass, or chain: labels of sequences.")
    ] = "multiclass",
    C: Annotated[float, typer.Option("--C", help="What margin errors cost.")] = 1.0,
    lengths: Lengths = None,
    sample_weight: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="How much each row or sequence counts: a vector, or a table's FILE:COLUMN.",
        ),
    ] = None,
) -> None:
    """A structured support vector machine; a file holds the rows of a node, with all columns."""


Cost = Annotated[float, typer.Option("--C", help="What losses cost.")]
NormBound = Annotated[
    float | None,
    typer.Option(help="Instead of --C: a bound on the sum of norms.", show_default=False),
]
Kernels = Annotated[
    str,
    typer.Option(
        metavar="KERNELS",
        help="Names with commas between them (rbf, linear, poly, laplacian), precomputed, or a "
        'JSON file with a list of names and of objects such as {"kernel": "rbf", "factor": 4}; '
        "default: three widths of rbf, and linear.",
    ),
]
Views = Annotated[
    str,
    typer.Option(
        metavar="VIEWS",
        help="sources: the columns of each file are a view; or a JSON file with a list of lists "
        "of column names or numbers.",
    ),
]
Send = Annotated[str, typer.Option(help="directions, or columns of kernels.")]


@fits("MultipleKernelClassifier", numeric_target=False, vectors=WEIGHTED)
def mkl_classifier(
    C: Cost = 1.0,
    beta: NormBound = None,
    kernels: Kernels = "",
    views: Views = "sources",
    send: Send = "directions",
    multi_class: Annotated[
        str, typer.Option(help="With several classes: one-vs-rest, or direct.")
    ] = "one-vs-rest",
    sample_weight: Weights = None,
) -> None:
    """Classification with few of many kernels, by default on the columns of each file."""


@fits("MultipleKernelRegressor", vectors=WEIGHTED)
def mkl_regressor(
    C: Cost = 1.0,
    beta: NormBound = None,
    kernels: Kernels = "",
    views: Views = "sources",
    send: Send = "directions",
    fit_intercept: Intercept = True,
    sample_weight: Weights = None,
) -> None:
    """Regression with few of many kernels, by default on the columns of each file."""


def _class_weight(balanced: bool) -> str | None:
    return "balanced" if balanced else None


def _number_or_name(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _kernels(kernels: str) -> Any:
    """The kernels that --kernels names: words, or the content of a file."""
    if kernels.endswith(".json"):
        return _json("--kernels", kernels)
    names = [name.strip() for name in kernels.split(",") if name.strip()]
    return "precomputed" if names == ["precomputed"] else names or None


def _listed(option: str, given: str) -> Any:
    """The columns that an option puts together: a word, or the content of a file."""
    if given == "sources":
        return given
    listed = _json(option, given)
    if not isinstance(listed, list) or not all(isinstance(columns, list) for columns in listed):
        raise ValueError(
            f"{option} {given} must hold a list of lists of columns, such as [[0, 1], [2]]"
        )
    return listed


def _json(option: str, path: str) -> Any:
    """The content of a JSON file."""
    import json
    from pathlib import Path

    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{option} {path} is no JSON file ({error})") from error


#: What parameters are made of where the command line has other words for them.
_READ: dict[str, Callable[[Any], Any]] = {
    "class_weight": _class_weight,
    "gamma": _number_or_name,
    "groups": partial(_listed, "--groups"),
    "kernels": _kernels,
    "views": partial(_listed, "--views"),
}
