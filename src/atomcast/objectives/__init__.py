"""What is minimised: smooth convex functions of the image z = A alpha."""

from atomcast.objectives.base import Curvature, Objective
from atomcast.objectives.log_mean_exp import LogMeanExp
from atomcast.objectives.logistic import Logistic
from atomcast.objectives.multinomial import Multinomial
from atomcast.objectives.squared_error import SquaredError

__all__ = ["Curvature", "LogMeanExp", "Logistic", "Multinomial", "Objective", "SquaredError"]
