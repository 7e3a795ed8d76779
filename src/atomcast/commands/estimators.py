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


def lasso(
    beta: Annotated[
        float,
        typer.Option(help="Bound on the sum of absolute weights: the larger, the more features."),
    ],
    intercept: Annotated[
        bool, typer.Option("--intercept/--no-intercept", help="Fit a constant too.")
    ] = True,
) -> Any:
    """Least squares with few features: ||y - X w - b||^2 subject to ||w||_1 <= beta."""
    from atomcast import Lasso

    return Lasso(beta, fit_intercept=intercept)


#: Commands by name.
ESTIMATORS: dict[str, Recipe] = {"lasso": Recipe(lasso)}
