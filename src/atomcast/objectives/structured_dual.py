"""The dual of the structured SVM, as a function of summed corners."""

from __future__ import annotations

import numpy as np

from atomcast.objectives.objective import Curvature, Floats, Objective


class StructuredDual(Objective):
    """Minus the dual of the structured SVM: g(z) = C^2 ||z_w||^2 / 2 - C z_l.

    Its image z = (z_w, z_l) is a mean, over outputs, of summed corners: of each example the
    difference of its joint features with the right output and another, and the loss of the other.
    The weights of the primal, ||w||^2 / 2 + C sum of hinge losses, are w = C z_w.

    Parameters
    ----------
    d : int
        Length of w.
    C : float
        What margin errors cost.
    """

    quadratic = True

    def __init__(self, d: int, C: float) -> None:
        self.d = d + 1
        self.C = float(C)
        # The objective crosses zero: it is as good as zero beside the loss of one example.
        self.negligible = 1e-10 * self.C

    def weights(self, z: Floats) -> Floats:
        """The weights w of the primal, shape (d - 1,)."""
        return self.C * z[:-1]

    def value(self, z: Floats) -> float:
        """Half the squared length of the weights, minus C times the loss."""
        w = self.weights(z)
        return 0.5 * float(w @ w) - self.C * float(z[-1])

    def gradient(self, z: Floats) -> Floats:
        """C times the weights, and minus C."""
        return self.C * np.append(self.weights(z), -1.0)

    def curvature(self, z: Floats) -> Curvature:
        """C^2, but for the loss, in which the objective is linear."""
        diagonal = np.full(self.d, self.C**2)
        diagonal[-1] = 0.0
        return Curvature(diagonal)

    def line_search(self, z: Floats, direction: Floats, max_step: float) -> float:
        """The exact minimiser along the direction, in closed form."""
        slope = -float(self.gradient(z) @ direction)
        bend = self.curvature(z).bend(direction)
        if slope <= 0.0:
            return 0.0
        return max_step if slope >= max_step * bend else slope / bend
