"""What is minimised: smooth convex functions of the image z = A alpha."""

from atomcast.objectives.log_mean_exp import LogMeanExp
from atomcast.objectives.logistic import Logistic
from atomcast.objectives.losses import (
    LogisticLoss,
    Loss,
    PointwiseLoss,
    SquaredHingeLoss,
    SquaredLoss,
)
from atomcast.objectives.multinomial import Multinomial
from atomcast.objectives.objective import Curvature, Objective
from atomcast.objectives.squared_error import SquaredError
from atomcast.objectives.structured_dual import StructuredDual

__all__ = [
    "Curvature",
    "LogMeanExp",
    "Logistic",
    "LogisticLoss",
    "Loss",
    "Multinomial",
    "Objective",
    "PointwiseLoss",
    "SquaredError",
    "SquaredHingeLoss",
    "SquaredLoss",
    "StructuredDual",
]
