"""Threads: those of the BLAS are left alone outside of runs, and products come out the same."""

import re
import threading

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import ThreadpoolController, threadpool_limits

from atomcast import Lasso, Solver, SparseLogisticRegression, _threads
from atomcast._threads import OURS, one_blas_thread, product, run_all
from atomcast.estimators import penalty_search


def blas_threads():
    """How many threads NumPy's BLAS has, and SciPy's; others may be there that have but one."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    ours = [library for library in libraries if re.search("numpy|scipy", library.filepath)]
    return [library.num_threads for library in ours or libraries]


@pytest.fixture
def two_threads():
    assert scipy.linalg is not None  # its BLAS is another than NumPy's
    with threadpool_limits(2, user_api="blas"):
        assert set(blas_threads()) == {2}
        yield


def test_the_last_one_out_gives_the_blas_its_threads_back(two_threads):
    with one_blas_thread():
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_they_may_leave_in_any_order(two_threads):
    entered, leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        assert entered.wait(60)
    leave.set()
    thread.join()
    assert set(blas_threads()) == {2}


def test_the_weights_of_a_penalty_are_found_with_one(two_threads, monkeypatch):
    seen, found = [], penalty_search.penalised_weights

    def look(*problem):
        seen.extend(blas_threads())
        return found(*problem)

    monkeypatch.setattr(penalty_search, "penalised_weights", look)
    X = np.random.default_rng(0).standard_normal((40, 5))
    SparseLogisticRegression(C=1.0).fit(X, X[:, 0] > 0.3 * X[:, 1])
    assert set(seen) == {1}
    assert set(blas_threads()) == {2}


def test_a_fit_uses_one_and_leaves_them_as_they_were(two_threads):
    seen = []

    def look(state):
        seen.extend(blas_threads())

    X = np.random.default_rng(0).standard_normal((20, 10))
    Lasso(beta=1.0, solver=Solver(callbacks=[look])).fit(X, X[:, 0])
    assert set(seen) == {1}
    assert set(blas_threads()) == {2}

    def fail(state):
        raise RuntimeError("as a callback may")

    with pytest.raises(RuntimeError, match="as a callback may"):
        Lasso(beta=1.0, solver=Solver(callbacks=[fail])).fit(X, X[:, 0])
    assert set(blas_threads()) == {2}


@pytest.mark.parametrize("columns", [(), (1,), (7,)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_product_is_shared_out(columns, order, monkeypatch):
    monkeypatch.setattr(_threads, "LARGE", 1)
    monkeypatch.setattr(_threads, "thread_count", lambda: 3)
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((50, 13)), rng.standard_normal((13, *columns))
    found = product(np.asarray(left, order=order), right)
    assert found.shape == (50, *columns)
    np.testing.assert_allclose(found, left @ right, rtol=1e-13, atol=1e-13)


def test_calls_within_calls_do_not_wait_for_each_other(monkeypatch):
    monkeypatch.setattr(_threads, "thread_count", lambda: 2)
    done = []

    def outer():
        assert threading.current_thread().name.startswith(OURS)
        run_all([lambda: done.append(1)] * 3)

    run_all([outer] * 4)
    assert len(done) == 12
