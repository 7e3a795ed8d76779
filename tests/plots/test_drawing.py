"""Pictures: what is drawn, and where."""

import subprocess
import sys

import numpy as np
import pytest

from atomcast.loop.trace import Row, Trace
from atomcast.plots.drawing import column, new_figure, plot_convergence, plot_trace


@pytest.fixture(autouse=True)
def plt():
    """pyplot, of which no figure is left by one test to the next."""
    import matplotlib.pyplot as plt

    plt.close("all")
    yield plt
    plt.close("all")


def trace_of(gaps, values=None, objective=2.0):
    trace = Trace()
    values = [1000 * (k + 1) for k in range(len(gaps))] if values is None else values
    for k, gap in enumerate(gaps):
        trace.append(Row(k, 0.1 * (k + 1), objective, gap, k, values[k], 8 * values[k]))
    return trace


def points(ax, label=None):
    lines = [line for line in ax.get_lines() if label is None or line.get_label() == label]
    return [(line.get_xdata(), line.get_ydata()) for line in lines]


def test_trace_plot_draws_the_columns_asked_for():
    ax = trace_of([4.0, 1.0, 0.1]).plot(x="round", y="gap")
    [(x, y)] = points(ax)
    np.testing.assert_array_equal(x, [0, 1, 2])
    np.testing.assert_array_equal(y, [4.0, 1.0, 0.1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("round", "duality gap")
    assert ax.get_yscale() == "log"


def test_relative_gap_is_a_column():
    np.testing.assert_array_equal(column(trace_of([4.0, 1.0]), "relative_gap"), [2.0, 0.5])
    [(_, y)] = points(plot_trace(trace_of([4.0, 1.0]), y="relative_gap"))
    np.testing.assert_array_equal(y, [2.0, 0.5])


def test_axes_are_logarithmic_only_where_it_helps():
    ax = plot_trace(trace_of([3.0, 2.0, 1.0], values=[0, 10, 1000]))
    assert (ax.get_xscale(), ax.get_yscale()) == ("symlog", "linear")


def test_infinite_gaps_are_left_out():
    [(x, _)] = points(plot_trace(trace_of([np.inf, 1.0, 0.5]), x="round"))
    np.testing.assert_array_equal(x, [1, 2])


def test_trace_plot_uses_the_axes_given():
    ax = plot_trace(trace_of([1.0]))
    assert plot_trace(trace_of([0.5]), ax=ax) is ax
    assert len(ax.get_lines()) == 2


def test_an_empty_trace_can_be_drawn():
    assert plot_trace(Trace()).get_xlabel() == "values sent"


@pytest.mark.parametrize("axis", ["x", "y"])
def test_unknown_columns_are_named(axis):
    with pytest.raises(ValueError, match=r"no column 'colour'; it has round, seconds"):
        plot_trace(trace_of([1.0]), **{axis: "colour"})


def test_convergence_draws_the_best_gap_so_far(tmp_path):
    traces = {"a": trace_of([2.0, 4.0, 1.0, 0.0]), "b": trace_of([2.0, 1.0])}
    figure = plot_convergence(traces, tmp_path / "p.png", tol=1e-2, title="t")
    left, right = figure.axes
    np.testing.assert_array_equal(points(left, "a")[0][1], [1.0, 1.0, 0.5, 1e-3])
    np.testing.assert_array_equal(points(right, "b")[0][0], [1000, 2000])
    assert (left.get_xlabel(), right.get_xlabel()) == ("round", "values sent")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_convergence_of_a_single_node_is_drawn_against_time():
    figure = plot_convergence({"alone": trace_of([2.0, 1.0], values=[0, 0])})
    assert figure.axes[1].get_xlabel() == "seconds"


def test_convergence_needs_a_trace():
    with pytest.raises(ValueError, match="traces is empty"):
        plot_convergence({})


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    for draw in (new_figure, lambda: plot_trace(trace_of([1.0]))):
        with pytest.raises(ImportError, match=r'pip install "atomcast\[plot\]"'):
            draw()


def test_figures_of_commands_touch_nothing_global():
    code = (
        "import sys; import atomcast.plots.drawing as p; assert 'matplotlib' not in sys.modules\n"
        "p.new_figure(); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_users_draw_is_on_the_current_figure_of_pyplot(tmp_path, plt):
    figure, (left, right) = plt.subplots(1, 2)
    assert trace_of([4.0, 1.0]).plot() is right is plt.gca()
    plt.sca(left)
    assert trace_of([3.0, 1.0]).plot(x="simulated_seconds", y="round") is left
    assert left.get_xlabel() == "simulated seconds"
    trace_of([2.0, 1.0]).plot(x="simulated_seconds", y="round")
    assert len({line.get_color() for line in left.get_lines()}) == 2
    assert plt.get_fignums() == [figure.number]


def test_without_a_figure_one_is_made_and_can_be_saved(tmp_path, plt):
    ax = trace_of([4.0, 1.0]).plot()
    plt.savefig(tmp_path / "p.png")
    shown = plt.imread(tmp_path / "p.png")
    assert ax.figure is plt.gcf()
    assert shown[..., :3].min() < 0.9  # not blank


def test_the_convergence_of_runs_is_the_current_figure_unless_it_goes_to_a_file(tmp_path, plt):
    figure = plot_convergence({"a": trace_of([2.0, 1.0])})
    assert plt.gcf() is figure
    assert plot_convergence({"a": trace_of([2.0, 1.0])}, tmp_path / "p.svg") is not plt.gcf()
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("name", Trace.columns)
def test_every_column_of_a_trace_can_be_drawn(name):
    assert plot_trace(trace_of([1.0, 0.5]), x=name).get_xlabel()
