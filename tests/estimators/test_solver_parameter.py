"""The solver as a parameter: by name, by default, and searched over."""

import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from atomcast import KernelSVC, L1AdaBoost, Lasso, Solver, SparseLogisticRegression, TimeLimit

X, y = load_diabetes(return_X_y=True)


@pytest.mark.parametrize("solver", [None, "pairwise", Solver(tol=0.5)])
def test_a_search_over_the_tolerance(solver):
    search = GridSearchCV(Lasso(1000.0, solver=solver), {"solver__tol": [5.0, 1e-6]}, cv=3)
    search.fit(X, y)
    assert search.best_params_ == {"solver__tol": 1e-6}
    assert search.best_estimator_.result_.relative_gap <= 1e-6
    assert search.best_estimator_.solver.step == (solver if solver == "pairwise" else "corrective")
    assert solver is None or solver == "pairwise" or solver.tol == 0.5  # the user's is untouched


def test_in_a_pipeline_and_with_the_solver_itself():
    model = make_pipeline(StandardScaler(), SparseLogisticRegression())
    model.set_params(sparselogisticregression__solver__max_rounds=7)
    assert model[-1].solver == Solver(max_rounds=7)
    assert L1AdaBoost().set_params(solver="away", solver__tol=0.1).solver == Solver("away", 0.1)
    watch = TimeLimit(60)
    copy = clone(Lasso(solver=Solver(tol=0.1, callbacks=[watch])))
    assert copy.solver.tol == 0.1
    assert copy.get_params()["solver__callbacks"][0].seconds == 60


def test_the_name_of_a_step_keeps_the_usual_tolerance():
    labels = y > 150
    named = KernelSVC(solver="corrective").fit(X[:80], labels[:80]).result_
    assert named.rounds == KernelSVC().fit(X[:80], labels[:80]).result_.rounds
    assert KernelSVC().set_params(solver__step="away").solver.tol == 1e-3
    assert Lasso().set_params(solver__step="away").solver.tol == Solver().tol


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"solver__tolerance": 1}, "a parameter of Solver must be one of 'step', 'tol'"),
        ({"solver__tol": -1.0}, "tol must be a finite number > 0"),
        (
            {"solver__callbacks": [3]},
            r"callbacks\[0\] must be a callable that takes a State",
        ),
        ({"solver": 3, "solver__tol": 0.1}, "solver must be None, the name of a step or a Solver"),
    ],
)
def test_mistakes_change_nothing(params, message):
    model = Lasso(solver=Solver(tol=0.25))
    with pytest.raises(ValueError, match=message):
        model.set_params(**params)
    assert model.solver == Solver(tol=0.25)


@pytest.mark.parametrize("callbacks", [[3], (print, None), "abc", 3, TimeLimit(1), None])
def test_bad_callbacks_are_refused_before_anything_runs(callbacks):
    with pytest.raises(ValueError, match=r"callbacks.* must be a .*callable"):
        Solver(callbacks=callbacks)
