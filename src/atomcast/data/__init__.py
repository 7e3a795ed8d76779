"""Data: who holds which atoms (`Shards`), readers, data sets and synthetic problems.

Importing this package is cheap: pandas, pyarrow, pooch and scikit-learn are imported by the
functions that need them.
"""

from atomcast.data._files import FileShards
from atomcast.data._mine import LocalShards
from atomcast.data._rows import ShardsOfRows
from atomcast.data._split import SplitShards
from atomcast.data.alignment import check_same_length, check_same_rows, row_digest
from atomcast.data.datasets import (
    DataSet,
    data_home,
    load_adult,
    load_dorothea,
    load_letter,
    load_usps,
)
from atomcast.data.finite import check_finite
from atomcast.data.generators import (
    LabelledExamples,
    LowerBoundInstance,
    SparseRegression,
    make_lower_bound,
    make_sparse_regression,
    make_speech_like,
)
from atomcast.data.grouped import GroupedShards, one_hot
from atomcast.data.parts import Part
from atomcast.data.readers import peek, read_part
from atomcast.data.shards import Shard, Shards
from atomcast.data.vectors import read_vector

__all__ = [
    "DataSet",
    "FileShards",
    "GroupedShards",
    "LabelledExamples",
    "LocalShards",
    "LowerBoundInstance",
    "Part",
    "Shard",
    "Shards",
    "ShardsOfRows",
    "SparseRegression",
    "SplitShards",
    "check_finite",
    "check_same_length",
    "check_same_rows",
    "data_home",
    "load_adult",
    "load_dorothea",
    "load_letter",
    "load_usps",
    "make_lower_bound",
    "make_sparse_regression",
    "make_speech_like",
    "one_hot",
    "peek",
    "read_part",
    "read_vector",
    "row_digest",
]
