import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from typer.testing import CliRunner


@pytest.fixture
def run():
    """Run the command line in this process; returns exit code, stdout and stderr."""
    from atomcast.cli import app

    def call(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return call


@pytest.fixture(scope="session")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture
def files(tmp_path, monkeypatch, diabetes):
    """A folder, made the current one, with the diabetes data in several shapes."""
    monkeypatch.chdir(tmp_path)
    X, y = diabetes
    X.to_csv("all.csv", index=False)
    pd.concat([X, y], axis=1).to_csv("with_target.csv", index=False)
    X.iloc[:, :4].to_csv("a.csv", index=False)
    X.iloc[:, 4:].to_csv("b.csv", index=False)
    np.save("X.npy", X.to_numpy())
    np.save("y.npy", y.to_numpy())
    y.to_csv("y.csv", index=False)
    return tmp_path
