"""Fit sparse models whose atoms are spread over a network, sending only the atoms they need."""

from __future__ import annotations

import importlib
import logging
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

__version__ = version("atomcast")

# Silent unless the program that uses the library listens to the logger "atomcast".
logging.getLogger(__name__).addHandler(logging.NullHandler())

# Names are imported when they are used: `import atomcast` stays light.
_HOMES = {
    "Balanced": "atomcast.selection.rules",
    "Checkpoint": "atomcast.storage.checkpoint",
    "Faults": "atomcast.network.faults",
    "GroupLasso": "atomcast.estimators.group_lasso",
    "GroupLogisticRegression": "atomcast.estimators.group_lasso",
    "KernelSVC": "atomcast.estimators.kernel_svc",
    "L1AdaBoost": "atomcast.estimators.boosting",
    "MCenters": "atomcast.selection.rules",
    "MultipleKernelClassifier": "atomcast.estimators.multiple_kernel",
    "MultipleKernelRegressor": "atomcast.estimators.multiple_kernel",
    "Outage": "atomcast.network.faults",
    "Partition": "atomcast.network.faults",
    "RandomSubset": "atomcast.selection.rules",
    "Lasso": "atomcast.estimators.lasso",
    "LassoCV": "atomcast.estimators.lasso_cv",
    "lasso_path": "atomcast.estimators.lasso_path",
    "LocalCluster": "atomcast.simulation.local",
    "MPICluster": "atomcast.cluster.mpi.cluster",
    "RayCluster": "atomcast.cluster.ray.ray_cluster",
    "Shards": "atomcast.data.shards",
    "Solver": "atomcast.loop.solver",
    "SparseLogisticRegression": "atomcast.estimators.logistic",
    "SparseLogisticRegressionCV": "atomcast.estimators.logistic_cv",
    "SparseModel": "atomcast.estimators.sparse_model",
    "StallError": "atomcast.errors",
    "TimeLimit": "atomcast.loop.callbacks",
    "load_model": "atomcast.saving.model_file",
    "save_model": "atomcast.saving.model_file",
}

__all__ = [
    "Balanced",
    "Checkpoint",
    "Faults",
    "GroupLasso",
    "GroupLogisticRegression",
    "KernelSVC",
    "L1AdaBoost",
    "Lasso",
    "LassoCV",
    "LocalCluster",
    "MCenters",
    "MPICluster",
    "MultipleKernelClassifier",
    "MultipleKernelRegressor",
    "Outage",
    "Partition",
    "RandomSubset",
    "RayCluster",
    "Shards",
    "Solver",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
    "SparseModel",
    "StallError",
    "TimeLimit",
    "__version__",
    "lasso_path",
    "load_model",
    "save_model",
]

if TYPE_CHECKING:
    from atomcast.cluster.mpi.cluster import MPICluster
    from atomcast.cluster.ray.ray_cluster import RayCluster
    from atomcast.data.shards import Shards
    from atomcast.errors import StallError
    from atomcast.estimators.boosting import L1AdaBoost
    from atomcast.estimators.group_lasso import GroupLasso, GroupLogisticRegression
    from atomcast.estimators.kernel_svc import KernelSVC
    from atomcast.estimators.lasso import Lasso
    from atomcast.estimators.lasso_cv import LassoCV
    from atomcast.estimators.lasso_path import lasso_path
    from atomcast.estimators.logistic import SparseLogisticRegression
    from atomcast.estimators.logistic_cv import SparseLogisticRegressionCV
    from atomcast.estimators.multiple_kernel import (
        MultipleKernelClassifier,
        MultipleKernelRegressor,
    )
    from atomcast.estimators.sparse_model import SparseModel
    from atomcast.loop.callbacks import TimeLimit
    from atomcast.loop.solver import Solver
    from atomcast.network.faults import Faults, Outage, Partition
    from atomcast.saving.model_file import load_model, save_model
    from atomcast.selection.rules import Balanced, MCenters, RandomSubset
    from atomcast.simulation.local import LocalCluster
    from atomcast.storage.checkpoint import Checkpoint


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'atomcast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
