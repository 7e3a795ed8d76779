"""Tables of many kinds, small ones, and what the models over them are worth, without atomcast.

Certificates are worked out in extended precision, from the coefficients alone: the intercept that a
model states is not asked for, as it is minimised out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from atomcast import GroupLasso, GroupLogisticRegression, Lasso, SparseLogisticRegression

Table = Any


# -- data -----------------------------------------------------------------------------------------


def shape(rng, most=120):
    """As many rows as columns, about, or far more or fewer."""
    d, n = (round(most ** rng.uniform(0.35, 1.0)) for _ in range(2))
    return d, (3 * n if rng.random() < 0.3 else n)


def dense(rng):
    return rng.standard_normal(shape(rng))


def sparse_columns(rng):
    d, n = shape(rng, 200)
    X = sparse.random_array((d, n), density=rng.choice([0.03, 0.1, 0.3]), format="csc", rng=rng)
    X.data = rng.standard_normal(len(X.data))
    return X


def counts(rng):
    """Words of texts: columns of very different lengths, and rows of norm one."""
    d, n = shape(rng, 200)
    X = rng.poisson(3.0 / (1.0 + np.arange(n)) ** 0.8, (d, n)).astype(float)
    X = np.log1p(X) / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    return sparse.csr_array(X)


def genes(rng):
    d, n = shape(rng)
    factors = int(rng.integers(1, 8))
    common = rng.standard_normal((d, factors)) @ rng.standard_normal((factors, n))
    return common + rng.uniform(0.01, 0.5) * rng.standard_normal((d, n))


def copies(rng):
    X = dense(rng)
    again = rng.integers(0, X.shape[1], X.shape[1])
    wrong = rng.choice([0.0, 1e-9, 1e-4]) * rng.standard_normal(X.shape)
    return np.hstack([X, X[:, again] * rng.choice([-1.0, 1.0, 2.0], len(again)) + wrong])


def one_hot(rng):
    d, parts = shape(rng)[0], []
    for _ in range(int(rng.integers(1, 6))):
        levels = rng.integers(0, rng.integers(2, 30), d)
        parts.append(levels[:, None] == np.unique(levels))
    X = np.hstack(parts).astype(float)
    return sparse.csc_array(X) if rng.random() < 0.7 else X


def badly_scaled(rng):
    X = dense(rng)
    return X * 10.0 ** rng.uniform(-4.0, 4.0, X.shape[1])


def far(rng):
    """Columns with means far from zero: without an intercept, they all but coincide."""
    X = dense(rng)
    mean = 10.0 ** rng.uniform(1.0, 3.5)
    signs = rng.choice([-1.0, 1.0], X.shape[1]) if rng.random() < 0.5 else 1.0
    return X + mean * signs * rng.choice([1.0, rng.uniform(0.5, 1.5)], X.shape[1])


def two_directions(rng):
    """The same in two directions, of which an intercept takes away one at most."""
    X = dense(rng)
    d, n = X.shape
    along = np.column_stack([np.ones(d), rng.choice([-1.0, 1.0], d)])
    return X + 10.0 ** rng.uniform(1.0, 3.5) * along @ rng.standard_normal((2, n))


def constants(rng):
    X = dense(rng)
    X[:, rng.random(X.shape[1]) < 0.3] = 10.0 ** rng.integers(-3, 5)
    X[:, rng.random(X.shape[1]) < 0.1] = 0.0
    return X


def low_rank(rng):
    d, n = shape(rng)
    rank = int(rng.integers(1, 4))
    return rng.standard_normal((d, rank)) @ rng.standard_normal((rank, n))


def integers(rng):
    return rng.integers(-1, 2, shape(rng)).astype(float)


KINDS = {
    kind.__name__: kind
    for kind in (
        dense, sparse_columns, counts, genes, copies, one_hot, badly_scaled, far, two_directions,
        constants, low_rank, integers,
    )
}  # fmt: skip


# -- models ---------------------------------------------------------------------------------------

MODELS = {
    "lasso": Lasso,
    "positive": Lasso,
    "groups": GroupLasso,
    "logistic": SparseLogisticRegression,
    "three classes": SparseLogisticRegression,
    "logistic groups": GroupLogisticRegression,
}


@dataclass(frozen=True)
class Case:
    """A table, a target, and what is to be fitted to them.

    Parameters
    ----------
    model : str
        One of `MODELS`.
    how : dict
        Its parameters, with `beta`, or with the penalty as users know it.
    labels : array of shape (n,)
        The group of each feature.
    c : array of shape (n_groups,)
    """

    model: str
    X: Table
    y: Any
    how: dict[str, Any]
    labels: Any
    c: Any

    @property
    def intercept(self) -> bool:
        return bool(self.how["fit_intercept"])

    @property
    def penalty(self) -> float:
        """What a unit of the norm costs beside the sum of all losses; nothing within a ball."""
        if "beta" in self.how:
            return 0.0
        alpha = self.how.get("alpha")
        return 1.0 / self.how["C"] if alpha is None else 2.0 * len(self.y) * alpha

    def fit(self, **more):
        return MODELS[self.model](**self.how, **more).fit(self.X, self.y)


def case(kind, model, strength, penalised, intercept, seed, single=False):
    """Data of a kind for a model; the same for the same arguments.

    The strength counts in decades, from a ball that has room for a tenth of what a first feature
    would explain, or from a penalty of 0.8 of the one that leaves no weights, to many weights.
    """
    rng = np.random.default_rng([seed, list(KINDS).index(kind), list(MODELS).index(model)])
    X = KINDS[kind](rng)
    X = X * 10.0 ** rng.choice([0, 0, 0, -6, 6])
    X = X.astype(np.float32) if single else X
    d, n = X.shape
    truth = np.where(rng.random((n, 3)) < min(1.0, 6.0 / n), rng.standard_normal((n, 3)), 0.0)
    scores = np.asarray(X @ truth, dtype=np.float64)
    scores = (scores - scores.mean(axis=0)) / np.maximum(scores.std(axis=0), 1e-300)
    scores += rng.choice([0.05, 1.0]) * rng.standard_normal(scores.shape)
    y = (scores[:, 0] + rng.choice([0.0, 30.0])) * 10.0 ** rng.choice([0, 0, -6, 6])
    how: dict[str, Any] = {"fit_intercept": intercept}
    labels, c = np.arange(n), np.ones(n)
    if model in ("logistic", "logistic groups"):
        y = np.where(scores[:, 0] > np.median(scores[:, 0]), 1, -1)
    elif model == "three classes":
        y = np.append(scores.argmax(axis=1)[:-3], [0, 1, 2])
    elif model == "positive":
        how["positive"] = True
    if "groups" in model:
        labels = np.sort(rng.integers(0, max(1, n // int(rng.integers(1, 7))), n))
        labels = np.unique(labels, return_inverse=True)[1]
        how["groups"] = [np.flatnonzero(labels == g).tolist() for g in range(labels.max() + 1)]
        c = np.sqrt(np.bincount(labels))
    posed = Case(model, X, y, how, labels, c)
    nothing = Certificate(posed, np.zeros((n, 3) if model == "three classes" else n))
    steepest, loss = nothing.steepest, nothing.loss
    if steepest <= 1e-12 * loss * abs(X).max():  # nothing to be gained
        steepest = loss
    if not penalised:
        how["beta"] = float(0.1 * 10.0**strength * loss / steepest)
    elif MODELS[model] in (Lasso, GroupLasso):
        how["alpha"] = float(0.8 * 10.0**-strength * steepest / (2 * d))
    else:
        how["C"] = float(1.25 * 10.0**strength / steepest)
    return posed


# -- certificates ---------------------------------------------------------------------------------


class Certificate:
    """What weights are worth, in extended precision.

    Parameters
    ----------
    posed : Case
    coef : array of shape (n,) or (n, n_classes)
    near : float or array of shape (n_classes,)
        Where to begin to look for the best intercept.

    Attributes
    ----------
    loss : float
        With the best intercept.
    norm : float
        Of the weights, as the ball has it.
    inner, steepest : float
        The product of weights and gradient, and the best merit of any atom.
    """

    def __init__(self, posed: Case, coef, near=0.0) -> None:
        X = posed.X.toarray() if sparse.issparse(posed.X) else posed.X
        X = X.astype(np.longdouble)
        w = np.asarray(coef, dtype=np.longdouble)
        self.loss, gradient = _loss(posed, X @ w, near)
        if posed.intercept:  # the gradient sums up to zero, but for rounding
            X = X - X.mean(axis=0)
        scores = X.T @ gradient
        self.inner = float(np.sum(w * scores))
        if "groups" in posed.model:
            size = np.sqrt(np.bincount(posed.labels, w.astype(float) ** 2))
            self.norm = float(posed.c @ size)
            merit = np.sqrt(np.bincount(posed.labels, scores.astype(float) ** 2)) / posed.c
        else:
            self.norm = float(np.abs(w).sum())
            merit = -scores if posed.model == "positive" else np.abs(scores)
        self.steepest = max(float(merit.max()), 0.0)

    def value(self, penalty: float) -> float:
        """The loss, and what the norm costs beside it."""
        return self.loss + penalty * self.norm

    def gap(self, beta: float) -> float:
        """How far the loss is from that of the best weights in a ball, at most."""
        return self.inner + beta * self.steepest


def _loss(posed: Case, z, near):
    """The least loss over all intercepts, and its gradient with respect to the image."""
    if posed.model in ("lasso", "positive", "groups"):
        residual = posed.y.astype(np.longdouble) - z
        residual = residual - residual.mean() if posed.intercept else residual
        return float(residual @ residual), -2.0 * residual
    if posed.model == "three classes":
        near = near + np.zeros(3)
        return _multinomial(z, posed.y, near - near[0] if posed.intercept else None)
    z = np.column_stack([np.zeros_like(z), z])
    near = np.append(0.0, near) if posed.intercept else None
    loss, gradient = _multinomial(z, (posed.y > 0).astype(int), near)
    return loss, gradient[:, 1]


def _multinomial(z, y, near):
    target = np.eye(z.shape[1], dtype=np.longdouble)[y]
    if near is not None:
        z = z + _best_intercept(z, target, near)
    level = z.max(axis=1, keepdims=True)
    total = np.exp(z - level)
    size = total.sum(axis=1, keepdims=True)
    loss = np.sum(np.log(size[:, 0]) + level[:, 0] - np.sum(target * z, axis=1))
    return float(loss), total / size - target


def _best_intercept(z, target, near):
    """Newton's method, with steps that are halved, for all constants but the first."""

    def look(b):
        level = (z + b).max(axis=1, keepdims=True)
        p = np.exp(z + b - level)
        size = p.sum(axis=1, keepdims=True)
        value = np.sum(np.log(size) + level) - np.sum(target * (z + b))
        p = p / size
        bend = (np.diag(p.sum(axis=0)) - p.T @ p).astype(float)[1:, 1:]
        return value, np.sum(p - target, axis=0)[1:].astype(float), bend

    b = np.asarray(near, dtype=np.longdouble)
    value, slope, bend = look(b)
    for _ in range(200):
        way = np.linalg.solve(bend + 1e-300 * np.eye(len(bend)), slope)
        for step in 0.5 ** np.arange(30):
            there = b - step * np.append(0.0, way)
            found = look(there)
            if found[0] < value:
                break
        else:
            return b
        b, (value, slope, bend) = there, found
    return b
