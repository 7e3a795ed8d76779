"""The best weights of known atoms where their norm costs something, instead of being bounded.

Their norm is the radius of the ball with the same solution. A quadratic objective takes one step,
others some Newton steps, each to the best weights of a quadratic model, or part of the way there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from atomcast.domains.balls import Domain
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.steps.inner.block_pivots import penalised_solution
from atomcast.steps.inner.column_model import ColumnModel
from atomcast.steps.inner.coordinate_descent import CoordinateDescent
from atomcast.steps.inner.newton import ENOUGH, RIDGE

Floats = NDArray[np.float64]

#: Steps end once a model promises less than this share of the objective, or than another one of
#: what is good enough; the last one is taken.
EXACT, ENOUGH_LEFT = 1e-12, 1e-3
#: So many steps are tried, and so many shorter ones each time.
STEPS, HALVES = 50, 20
#: By such a share of the penalty, merits may be above it.
SLACK = 1e-9
#: Of up to so many that have no weight yet, guesses take longer than care does.
FEW = 12
#: Weights come and go one by one at most so many times for each of them.
TURNS = 6


def penalised_weights(
    domain: Domain,
    active: ExplicitActiveSet,
    penalty: float,
    tol: float = 0.0,
    steps: int = STEPS,
) -> Floats | None:
    """The best weights of known atoms where a unit of their norm costs so much, if it is easy.

    A gap of `tol` times the objective would do. Where a model is not easy, they are those of the
    models before it, and after so many steps those that these have led to. Nothing is changed.
    """
    if active.quadratic:
        gram = active.kept_products
        gram.extend(active)
        return penalised_solution(domain, gram.matrix, active.weights, active.scores(), penalty)
    active, careful, exact = active.sketch(), False, max(EXACT, ENOUGH_LEFT * tol)

    def cost() -> float:
        return active.value() + penalty * float(np.abs(active.weights).sum())

    for _ in range(steps):
        old, slopes, before = active.weights.copy(), active.scores(), cost()
        chosen = (old != 0.0) | (domain.merit(slopes) > penalty)
        if active.sweepable:
            new = swept(domain, active, slopes, chosen, penalty)
        else:
            places, new = chosen.nonzero()[0], np.zeros_like(old)
            hessian = active.hessian(places)
            np.einsum("ii->i", hessian)[:] *= 1.0 + RIDGE
            model = (domain, hessian, old[places], slopes[places], penalty)
            guess = not (careful or np.count_nonzero(old[places] == 0.0) <= FEW)
            found = penalised_solution(*model) if guess else one_by_one(*model)
            if found is None:
                careful, found = guess, one_by_one(*model) if guess else penalised_solution(*model)
            if found is None:
                break
            new[places] = found
        change = new - old
        longer = float(np.abs(new).sum() - np.abs(old).sum())
        promise = -float(change @ slopes) - penalty * longer
        if promise <= exact * before:
            return new
        for half in range(HALVES):
            active.set_weights(old + 0.5**half * change)
            if before - cost() >= ENOUGH * 0.5**half * promise:
                break
        else:
            active.set_weights(old)
            break
    # Not the best perhaps, but nearer to it than what was known.
    return active.weights if active.weights.any() else None


def swept(
    domain: Domain,
    active: ExplicitActiveSet,
    slopes: Floats,
    chosen: NDArray[np.bool_],
    penalty: float,
) -> Floats:
    """About the best weights of a model by sweeps over the columns: the next is another anyway."""
    model = ColumnModel.of(active, slopes)
    weights, gradient = model.start.copy(), model.gradient.copy()
    CoordinateDescent(domain).sweep(model, weights, gradient, chosen, penalty, 0.0)
    return weights


def one_by_one(
    domain: Domain, matrix: Floats, weights: Floats, slopes: Floats, penalty: float
) -> Floats | None:
    """What `penalised_solution` finds, in the careful way of Lawson and Hanson.

    The best atom joins, the others follow, and the first of them to come to zero leaves. As nothing
    is guessed, it ends, unless rounding or flat directions are in the way.
    """
    at_zero = slopes - matrix @ weights
    weights, signs = weights.copy(), np.sign(weights)
    for _ in range(TURNS * len(weights)):
        free = signs.nonzero()[0]
        if len(free):
            start, sides = weights[free], at_zero[free] + penalty * signs[free]
            _, solution, failed = dposv(matrix[free[:, None], free], -sides)
            if failed:
                return None
            wrong = solution * signs[free] <= 0.0
            if wrong.any():
                back = start - solution
                share = np.divide(start, back, out=np.ones(len(free)), where=wrong & (back != 0.0))
                weights[free] = start - share.min() * back
                leaving = free[wrong & (share <= share.min())]
                signs[leaving] = weights[leaving] = 0.0
                continue
            weights[free] = solution
        slopes = at_zero + matrix @ weights
        merit = np.where(signs == 0.0, domain.merit(slopes), -np.inf)
        best = int(merit.argmax())
        if merit[best] <= (1.0 + SLACK) * penalty:
            return weights
        signs[best] = domain.sign(float(slopes[best]))
    return None
