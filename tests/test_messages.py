"""Messages as a whole: whatever a parameter is given in vain, the error says which, what, and how.

Every parameter of every public class is in the table, so that a new one is in it on its own.
"""

import inspect
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, is_classifier

import atomcast
from atomcast import Shards
from atomcast.domains import L1Ball
from atomcast.objectives import SquaredLoss

rng = np.random.default_rng(0)
X = rng.standard_normal((20, 4))
y = X[:, 0] + 0.1 * rng.standard_normal(20)


class Nonsense:
    """What no parameter accepts."""

    def __repr__(self):
        return "<nonsense>"

    def __sklearn_clone__(self):
        return self


#: What a class needs beside the parameter that is wrong.
NEEDED = {
    "Checkpoint": {"path": "run"},
    "DictionaryLearning": {"n_components": 2, "n_nonzero": 1, "max_iter": 2},
    "FederatedCluster": {"address": "localhost:1", "members": ["a"], "certificates": "."},
    "LocalCluster": {"nodes": 2},
    "Outage": {"node": 0, "start": 1},
    "Partition": {"nodes": (0,), "start": 1, "end": 2},
    "RayCluster": {"nodes": 2},
    "SparseCoder": {"dictionary": np.eye(4), "n_nonzero": 1},
    "SparseModel": {"objective": SquaredLoss(), "domain": L1Ball(1.0)},
    "TimeLimit": {"seconds": 1.0},
}
#: Words for a parameter where another name tells more: a solver may be the name of a step.
ALSO = {"solver": "step", "kernels": "kernel", "cv": "n_splits|`cv`"}
#: Errors that are not of parameters; what is checked where it is used, or by scikit-learn; and
#: classes whose parameters are addresses and files, which have tests of their own.
ELSEWHERE = {"StallError", "FederatedCluster", "MPICluster", "RayCluster", "Shards"}
UNCHECKED = {("DictionaryLearning", "random_state"), ("KernelSVC", "random_state")}

CLASSES = {
    name: thing
    for name in sorted(atomcast.__all__)
    if inspect.isclass(thing := getattr(atomcast, name)) and name not in ELSEWHERE
}


def parameters(kind):
    if issubclass(kind, BaseEstimator):
        return kind._get_param_names()
    return list(inspect.signature(kind).parameters)


def use(name, given):
    """Make an object of a class with these parameters, and fit it if it is an estimator."""
    made = CLASSES[name](**{**NEEDED.get(name, {}), **given})
    if not isinstance(made, BaseEstimator):
        return
    labels = is_classifier(made) or name in ("L1AdaBoost", "StructuredSVM")
    made.fit(X, (y > 0).astype(int) if labels else y)
    if hasattr(made, "transform"):
        made.transform(X)


TABLE = [
    (name, parameter)
    for name, kind in CLASSES.items()
    for parameter in parameters(kind)
    if (name, parameter) not in UNCHECKED
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "parameter"), TABLE)
def test_an_error_names_parameter_value_and_remedy(name, parameter):
    for given in (Nonsense(), "nonsense", -1.5):
        try:
            use(name, {parameter: given})
        except (ValueError, TypeError) as error:
            message = str(error)
        else:
            # A seed may be negative, and a name may be any text.
            assert not isinstance(given, Nonsense), "nonsense is accepted"
            continue
        assert re.search(f"{parameter}|{ALSO.get(parameter, parameter)}", message), message
        assert repr(given) in message or f"got {given}" in message.lower(), message
        assert re.search(r"must|use |try |give |[Ee]xpected|requires|accepted", message), message


#: What goes wrong with data: the call, and what must be in the message, the remedy last.
DATA = [
    (lambda: atomcast.Lasso(1.0).fit(X, y[:3]), ["20", "3"]),
    (lambda: atomcast.Lasso(1.0).fit(np.where(X > 2, np.nan, X), y), ["X", "NaN"]),
    (lambda: atomcast.Lasso(1.0).fit(Shards.split(X, 2), y[:3]), ["3", "20"]),
    (lambda: Shards.split(X, 0), ["nodes", "0", ">= 1"]),
    (lambda: Shards.split(X, 2, by="size"), ["by", "'size'", 'use "random"']),
    (lambda: Shards.split(X, 2, by=[1, 2]), ["by=[1, 2]", "3", "add up to"]),
    (lambda: Shards.split(X, 2, names=["a"]), ["names", "1", "give one name each"]),
    (lambda: Shards.split(X, 2, party_names=["a", "a"]), ["'a'", "give every node its own"]),
    (lambda: Shards.split(X[0], 2), ["X", "1 dimension", "reshape"]),
    (lambda: Shards.split(X.astype(str), 2), ["X", "dtype", "encode"]),
    (lambda: Shards.split(X, 2).shard(7), ["7", "2"]),
    (lambda: Shards.files([]), ["paths", "empty", "at least one file"]),
    (lambda: Shards.files("a.csv"), ["paths", "'a.csv'", "['a.csv'] for one node"]),
    (lambda: Shards.files(["a.xyz"]).count(), ["a.xyz", "'.xyz'", "rename or convert"]),
    (lambda: Shards.files(["no.csv"]).count(), ["no.csv", "check its name"]),
    (lambda: Shards.files(["a.csv"], align="outer"), ["align", "'outer'", "'inner'"]),
    (lambda: Shards.files(["a.csv"], prefix="a"), ["prefix", "'a'", "use True"]),
    (lambda: atomcast.Lasso(1.0, cluster=LOCAL).fit(Shards.split(X, 3), y), ["3", "2"]),
    (lambda: atomcast.load_model("no.safetensors"), ["no.safetensors", "check its name"]),
    (lambda: atomcast.KernelSVC().fit(X, np.zeros(20)), ["y", "one class", "two or more"]),
]
LOCAL = atomcast.LocalCluster(2)


@pytest.mark.parametrize(("call", "parts"), DATA)
def test_an_error_about_data_says_what_to_do(call, parts):
    with pytest.raises((ValueError, TypeError, IndexError, FileNotFoundError)) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
