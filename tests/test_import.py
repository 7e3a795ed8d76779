"""`import atomcast` is light, and every public name can be had."""

import subprocess
import sys

import pytest

import atomcast

HEAVY = ("numba", "matplotlib", "ray", "mpi4py", "pandas", "sklearn", "scipy", "rich", "pyarrow")
HEAVY += ("grpc", "cryptography", "onnx", "IPython")


def modules_after(code):
    script = f"import sys\n{code}\nprint(' '.join(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_heavy():
    assert modules_after("import atomcast").isdisjoint(HEAVY)


def test_the_core_needs_no_scikit_learn():
    loaded = modules_after("from atomcast import FederatedCluster, LocalCluster, Shards, Solver")
    assert loaded.isdisjoint(set(HEAVY) - {"rich", "scipy"})


@pytest.mark.parametrize(
    "model",
    [
        "Lasso(beta=1.0, cluster=3)",
        "GroupLasso(beta=1.0, groups=[[3 * g, 3 * g + 1, 3 * g + 2] for g in range(30)])",
        "MultipleKernelRegressor()",
        "SparseLogisticRegression(beta=40.0)",
        "L1AdaBoost(max_rounds=10)",
    ],
)
def test_a_small_fit_compiles_and_draws_nothing(model):
    """Beyond what scikit-learn itself imports: no compiler, no figures, no other cluster."""
    y = "X[:, 0]" if "Lasso" in model or "Regressor" in model else "X[:, :60].sum(axis=1) > 0.0"
    code = (
        "import numpy as np, atomcast\n"
        "X = np.random.default_rng(0).standard_normal((150, 90))\n"
        f"atomcast.{model}.fit(X, {y})"
    )
    assert modules_after(code).isdisjoint({"numba", "matplotlib", "ray", "mpi4py"})


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_small_kernel_machines_wait_for_no_compiler(classes):
    code = (
        "import numpy as np, atomcast\n"
        "X = np.random.default_rng(0).standard_normal((150, 4))\n"
        f"y = np.arange(150) % {classes}\n"
        "assert atomcast.KernelSVC().fit(X + y[:, None], y).score(X + y[:, None], y) > 0.5"
    )
    assert "numba" not in modules_after(code)


def test_a_small_fit_of_many_features_waits_for_no_compiler():
    code = (
        "import numpy as np, atomcast\n"
        "X = np.random.default_rng(0).standard_normal((300, 400))\n"
        "model = atomcast.Lasso(beta=60.0).fit(X, X[:, :150].sum(axis=1))\n"
        "assert np.count_nonzero(model.coef_) > 150"  # fewer are never worth compiled code
    )
    assert "numba" not in modules_after(code)


@pytest.mark.parametrize("name", sorted(atomcast.__all__))
def test_every_public_name_exists(name):
    assert getattr(atomcast, name) is not None
    assert name in dir(atomcast)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Lazzo'"):
        atomcast.Lazzo  # noqa: B018
