"""The public names: one line each, for type checkers and for `__init__.py`, which reads it."""

from atomcast.cluster.mpi.cluster import MPICluster as MPICluster
from atomcast.cluster.ray.ray_cluster import RayCluster as RayCluster
from atomcast.data.preparing import Preparation as Preparation
from atomcast.data.shards import Shards as Shards
from atomcast.errors import StallError as StallError
from atomcast.estimators.boosted_regression import L1BoostRegressor as L1BoostRegressor
from atomcast.estimators.boosting import L1AdaBoost as L1AdaBoost
from atomcast.estimators.dictionary_learning import DictionaryLearning as DictionaryLearning
from atomcast.estimators.group_lasso import GroupLasso as GroupLasso
from atomcast.estimators.group_lasso import GroupLogisticRegression as GroupLogisticRegression
from atomcast.estimators.kernel_svc import KernelSVC as KernelSVC
from atomcast.estimators.kernel_svr import KernelSVR as KernelSVR
from atomcast.estimators.lasso import Lasso as Lasso
from atomcast.estimators.lasso_cv import LassoCV as LassoCV
from atomcast.estimators.lasso_path import lasso_path as lasso_path
from atomcast.estimators.logistic_cv import SparseLogisticRegressionCV as SparseLogisticRegressionCV
from atomcast.estimators.logistic_regression import (
    SparseLogisticRegression as SparseLogisticRegression,
)
from atomcast.estimators.matching_pursuit import MatchingPursuit as MatchingPursuit
from atomcast.estimators.multiple_kernel import MultipleKernelClassifier as MultipleKernelClassifier
from atomcast.estimators.multiple_kernel import MultipleKernelRegressor as MultipleKernelRegressor
from atomcast.estimators.sparse_coder import SparseCoder as SparseCoder
from atomcast.estimators.sparse_model import SparseModel as SparseModel
from atomcast.estimators.structured_svm import StructuredSVM as StructuredSVM
from atomcast.federated.federated_cluster import FederatedCluster as FederatedCluster
from atomcast.loop.callbacks import TimeLimit as TimeLimit
from atomcast.loop.solver import Solver as Solver
from atomcast.network.faults import Faults as Faults
from atomcast.network.faults import Outage as Outage
from atomcast.network.faults import Partition as Partition
from atomcast.saving.model_file import load_model as load_model
from atomcast.saving.model_file import save_model as save_model
from atomcast.saving.onnx_file import save_onnx as save_onnx
from atomcast.selection.rules import Balanced as Balanced
from atomcast.selection.rules import MCenters as MCenters
from atomcast.selection.rules import RandomSubset as RandomSubset
from atomcast.simulation.local import LocalCluster as LocalCluster
from atomcast.storage.checkpoint import Checkpoint as Checkpoint

__version__: str
