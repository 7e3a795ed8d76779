"""The estimators of `atomcast fit`.

An estimator is a function whose parameters are its options on the command line, and which
returns it unfitted. To add one, write such a function and a line in `ESTIMATORS`; parts, target,
network, solver and output are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer


@dataclass(frozen=True)
class Recipe:
    """An estimator as a command.

    Parameters
    ----------
    make : callable
        Returns the estimator; its docstring is the help of the command.
    axis : {0, 1}
        Whether a node holds rows (examples, 0) or columns (features, 1).
    numeric_target : bool
        Whether the target must be numbers; otherwise labels of any kind.
    vectors : tuple of str
        Options that name files with vectors, which `fit` is given under the same names.
    """

    make: Callable[..., Any]
    axis: int = 1
    numeric_target: bool = True
    vectors: tuple[str, ...] = ()


Beta = Annotated[
    float,
    typer.Option(help="Bound on the sum of absolute weights: the larger, the more features."),
]
Intercept = Annotated[bool, typer.Option("--intercept/--no-intercept", help="Fit a constant too.")]
Balanced = Annotated[
    bool, typer.Option("--balanced", help="Let all classes count alike, however many rows each.")
]
BetaCount = Annotated[int, typer.Option("--n-betas", help="How many radii to try.")]
Folds = Annotated[int, typer.Option(help="Folds of the cross-validation.")]
Lengths = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="How many rows each sequence has, counted through the files: a vector, or a table's "
        "FILE:COLUMN.",
        show_default=False,
    ),
]
GroupsFile = Annotated[
    str,
    typer.Option(
        metavar="GROUPS",
        help="sources: the columns of each file are a group; or a JSON file with a list of lists "
        "of column names or numbers.",
    ),
]


def lasso(beta: Beta, intercept: Intercept = True) -> Any:
    """Least squares with few features: ||y - X w - b||^2 subject to ||w||_1 <= beta."""
    from atomcast import Lasso

    return Lasso(beta, fit_intercept=intercept)


def lasso_cv(n_betas: BetaCount = 30, folds: Folds = 5, intercept: Intercept = True) -> Any:
    """Least squares with few features, as many as cross-validation likes best."""
    from atomcast import LassoCV

    return LassoCV(n_betas=n_betas, cv=folds, fit_intercept=intercept)


def logistic(beta: Beta, intercept: Intercept = True, balanced: Balanced = False) -> Any:
    """Logistic regression with few features, for two or more classes: ||w||_1 <= beta."""
    from atomcast import SparseLogisticRegression

    return SparseLogisticRegression(
        beta, fit_intercept=intercept, class_weight=_class_weight(balanced)
    )


def logistic_cv(
    n_betas: BetaCount = 20,
    folds: Folds = 5,
    intercept: Intercept = True,
    balanced: Balanced = False,
) -> Any:
    """Logistic regression with few features, as many as cross-validation likes best."""
    from atomcast import SparseLogisticRegressionCV

    return SparseLogisticRegressionCV(
        n_betas=n_betas, cv=folds, fit_intercept=intercept, class_weight=_class_weight(balanced)
    )


def group_lasso(beta: Beta, groups: GroupsFile = "sources", intercept: Intercept = True) -> Any:
    """Least squares with few groups of features, by default the columns of few files."""
    from atomcast import GroupLasso

    return GroupLasso(beta, groups=_groups(groups), fit_intercept=intercept)


def group_logistic(
    beta: Beta,
    groups: GroupsFile = "sources",
    intercept: Intercept = True,
    balanced: Balanced = False,
) -> Any:
    """Logistic regression for two classes with few groups of features."""
    from atomcast import GroupLogisticRegression

    return GroupLogisticRegression(
        beta,
        groups=_groups(groups),
        fit_intercept=intercept,
        class_weight=_class_weight(balanced),
    )


def boosting(
    temperature: Annotated[
        float, typer.Option(help="The smaller, the closer the fit, and the more stumps.")
    ] = 0.05,
    base: Annotated[
        str, typer.Option(help="stumps over the features, or matrix: the columns themselves.")
    ] = "stumps",
) -> Any:
    """Boosting: the best convex combination of decision stumps, for two classes."""
    from atomcast import L1AdaBoost

    return L1AdaBoost(temperature, base=base)


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
    balanced: Balanced = False,
) -> Any:
    """A kernel support vector machine; here a file holds the rows of a node, with all columns."""
    from atomcast import KernelSVC

    return KernelSVC(
        C,
        kernel=kernel,
        gamma=_number_or_name(gamma),
        degree=degree,
        coef0=coef0,
        multi_class=multi_class,
        class_weight=_class_weight(balanced),
    )


def structured_svm(
    model: Annotated[
        str, typer.Option(help="What is told: multiclass, or chain: labels of sequences.")
    ] = "multiclass",
    C: Annotated[float, typer.Option("--C", help="What margin errors cost.")] = 1.0,
    lengths: Lengths = None,
) -> Any:
    """A structured support vector machine; a file holds the rows of a node, with all columns."""
    from atomcast import StructuredSVM

    return StructuredSVM(model, C=C)


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


#: Commands by name.
ESTIMATORS: dict[str, Recipe] = {
    "lasso": Recipe(lasso),
    "lasso-cv": Recipe(lasso_cv),
    "logistic": Recipe(logistic, numeric_target=False),
    "logistic-cv": Recipe(logistic_cv, numeric_target=False),
    "group-lasso": Recipe(group_lasso),
    "group-logistic": Recipe(group_logistic, numeric_target=False),
    "boosting": Recipe(boosting, numeric_target=False),
    "kernel-svm": Recipe(kernel_svm, axis=0, numeric_target=False),
    "structured-svm": Recipe(structured_svm, axis=0, numeric_target=False, vectors=("lengths",)),
}
