"""Lasso solutions along a path of radii, each warm-started from the one before."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from atomcast.estimators.lasso import Lasso
from atomcast.estimators.radial import Path
from atomcast.loop.solver import Solver


def lasso_path(
    X: Any,
    y: Any,
    *,
    betas: ArrayLike | None = None,
    n_betas: int = 30,
    sample_weight: Any = None,
    fit_intercept: bool = True,
    positive: bool = False,
    cluster: Any = None,
    solver: str | Solver | None = None,
) -> Path:
    """Fit the lasso for several radii, in rising order, without sending any feature twice.

    Parameters
    ----------
    X : array, scipy sparse matrix, DataFrame or Shards of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    betas : array of shape (n_betas,), optional
        The radii; by default `n_betas` of them, from an empty model to the solution at 1/1000 of
        the penalty that leaves it empty, as in scikit-learn, at penalties that fall geometrically.
    sample_weight : array of shape (n_samples,), optional
    fit_intercept, positive, cluster, solver
        As for `Lasso`.

    Returns
    -------
    Path
        After Ctrl-C, up to the radius that was being fitted, with a warning.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from atomcast import lasso_path
    >>> path = lasso_path(*load_diabetes(return_X_y=True), betas=[10, 100, 1000])
    >>> path.coefs.shape
    (10, 3)
    """
    model = Lasso(fit_intercept=fit_intercept, positive=positive, cluster=cluster, solver=solver)
    return model.path(X, y, betas=betas, n_betas=n_betas, sample_weight=sample_weight)
