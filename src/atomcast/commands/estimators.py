"""The estimators of `atomcast fit`.

An estimator is a function without a body: its parameters are those of the estimator that users
may set on the command line, and its docstring is the help. Parts, target, network, solver and
output are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any

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
    """

    make: Callable[..., Any]
    axis: int = 1
    numeric_target: bool = True


#: Commands by name.
ESTIMATORS: dict[str, Recipe] = {}


def fits(estimator: str, **more: Any) -> Callable[[Callable[..., None]], Callable[..., Any]]:
    """Make a command of the public estimator with this name; `more` goes to its `Recipe`."""

    def enter(options: Callable[..., None]) -> Callable[..., Any]:
        @wraps(options)
        def make(**given: Any) -> Any:
            import atomcast

            for name in _READ.keys() & given.keys():
                given[name] = _READ[name](given[name])
            return getattr(atomcast, estimator)(**given)

        ESTIMATORS[options.__name__.replace("_", "-")] = Recipe(make, **more)
        return make

    return enter


Beta = Annotated[
    float,
    typer.Option(help="Bound on the sum of absolute weights: the larger, the more features."),
]
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


@fits("Lasso")
def lasso(beta: Beta, fit_intercept: Intercept = True) -> None:
    """Least squares with few features: ||y - X w - b||^2 subject to ||w||_1 <= beta."""


@fits("LassoCV")
def lasso_cv(n_betas: BetaCount = 30, cv: Folds = 5, fit_intercept: Intercept = True) -> None:
    """Least squares with few features, as many as cross-validation likes best."""


@fits("SparseLogisticRegression", numeric_target=False)
def logistic(beta: Beta, fit_intercept: Intercept = True, class_weight: Balanced = False) -> None:
    """Logistic regression with few features, for two or more classes: ||w||_1 <= beta."""


@fits("SparseLogisticRegressionCV", numeric_target=False)
def logistic_cv(
    n_betas: BetaCount = 20,
    cv: Folds = 5,
    fit_intercept: Intercept = True,
    class_weight: Balanced = False,
) -> None:
    """Logistic regression with few features, as many as cross-validation likes best."""


@fits("GroupLasso")
def group_lasso(
    beta: Beta, groups: GroupsFile = "sources", fit_intercept: Intercept = True
) -> None:
    """Least squares with few groups of features, by default the columns of few files."""


@fits("GroupLogisticRegression", numeric_target=False)
def group_logistic(
    beta: Beta,
    groups: GroupsFile = "sources",
    fit_intercept: Intercept = True,
    class_weight: Balanced = False,
) -> None:
    """Logistic regression for two classes with few groups of features."""


@fits("L1AdaBoost", numeric_target=False)
def boosting(
    temperature: Annotated[
        float, typer.Option(help="The smaller, the closer the fit, and the more stumps.")
    ] = 0.05,
    base: Annotated[
        str, typer.Option(help="stumps over the features, or matrix: the columns themselves.")
    ] = "stumps",
) -> None:
    """Boosting: the best convex combination of decision stumps, for two classes."""


@fits("KernelSVC", axis=0, numeric_target=False)
def kernel_svm(
    C: Annotated[float, typer.Option("--C", help="What margin errors cost.")] = 1.0,
    kernel: Annotated[str, typer.Option(help="rbf, linear, poly or laplacian.")] = "rbf",
    gamma: Annotated[
        str, typer.Option(help="Of the kernel: mean-distance, scale, or a number.")
    ] = "mean-distance",
    degree: Annotated[int, typer.Option(help="Of the polynomial kernel.")] = 3,
    coef0: Annotated[float, typer.Option(help="The constant in the polynomial kernel.")] = 0.0,
    multi_class: Annotated[
        str, typer.Option(help="direct: one machine; or one-vs-rest: one a class.")
    ] = "direct",
    class_weight: Balanced = False,
) -> None:
    """A kernel support vector machine; here a file holds the rows of a node, with all columns."""


def _class_weight(balanced: bool) -> str | None:
    return "balanced" if balanced else None


def _number_or_name(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _groups(groups: str) -> Any:
    """The groups that --groups names: a word, or the content of a file."""
    import json
    from pathlib import Path

    if groups == "sources":
        return groups
    try:
        listed = json.loads(Path(groups).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--groups {groups} is no JSON file ({error})") from error
    if not isinstance(listed, list) or not all(isinstance(group, list) for group in listed):
        raise ValueError(
            f"--groups {groups} must hold a list of lists of columns, such as [[0, 1], [2]]"
        )
    return listed


#: What parameters are made of where the command line has other words for them.
_READ: dict[str, Callable[[Any], Any]] = {
    "class_weight": _class_weight,
    "gamma": _number_or_name,
    "groups": _groups,
}
