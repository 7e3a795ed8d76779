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
    """

    make: Callable[..., Any]
    axis: int = 1
    numeric_target: bool = True


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

    return GroupLasso(beta, groups=_listed("--groups", groups), fit_intercept=intercept)


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
        groups=_listed("--groups", groups),
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


Cost = Annotated[float, typer.Option("--C", help="What losses cost.")]
Radius = Annotated[
    float | None,
    typer.Option(help="Instead of --C: a bound on the sum of norms.", show_default=False),
]
ViewKernels = Annotated[
    str,
    typer.Option(
        metavar="KERNELS",
        help="Names with commas between them (rbf, linear, poly, laplacian), precomputed, or a "
        "JSON file with a list of names and of objects such as "
        '{"kernel": "rbf", "factor": 4}; default: three widths of rbf, and linear.',
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


def mkl_classifier(
    C: Cost = 1.0,
    beta: Radius = None,
    kernels: ViewKernels = "",
    views: Views = "sources",
    send: Send = "directions",
) -> Any:
    """Classification with few of many kernels, by default on the columns of each file."""
    from atomcast import MultipleKernelClassifier

    return MultipleKernelClassifier(
        C, beta=beta, kernels=_kernels(kernels), views=_listed("--views", views), send=send
    )


def mkl_regressor(
    C: Cost = 1.0,
    beta: Radius = None,
    kernels: ViewKernels = "",
    views: Views = "sources",
    send: Send = "directions",
    intercept: Intercept = True,
) -> Any:
    """Regression with few of many kernels, by default on the columns of each file."""
    from atomcast import MultipleKernelRegressor

    return MultipleKernelRegressor(
        C,
        beta=beta,
        kernels=_kernels(kernels),
        views=_listed("--views", views),
        send=send,
        fit_intercept=intercept,
    )


def _kernels(kernels: str) -> Any:
    """The kernels that --kernels names: words, or the content of a file."""
    if kernels.endswith(".json"):
        return _json("--kernels", kernels)
    names = [name.strip() for name in kernels.split(",") if name.strip()]
    return "precomputed" if names == ["precomputed"] else names or None


def _class_weight(balanced: bool) -> str | None:
    return "balanced" if balanced else None


def _number_or_name(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


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


#: Commands by name.
ESTIMATORS: dict[str, Recipe] = {
    "lasso": Recipe(lasso),
    "lasso-cv": Recipe(lasso_cv),
    "logistic": Recipe(logistic, numeric_target=False),
    "logistic-cv": Recipe(logistic_cv, numeric_target=False),
    "group-lasso": Recipe(group_lasso),
    "group-logistic": Recipe(group_logistic, numeric_target=False),
    "boosting": Recipe(boosting, numeric_target=False),
    "mkl-classifier": Recipe(mkl_classifier, numeric_target=False),
    "mkl-regressor": Recipe(mkl_regressor),
    "kernel-svm": Recipe(kernel_svm, axis=0, numeric_target=False),
}
