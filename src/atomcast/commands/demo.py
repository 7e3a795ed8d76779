"""`atomcast demo`: the corrective step beside the paper's, on data that ships with scikit-learn."""

from __future__ import annotations

import time
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from atomcast.commands.logs import Verbosity, log_on_stderr
from atomcast.commands.mistakes import Debug, clear_errors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from atomcast import Lasso
    from atomcast.loop.trace import Trace

#: Products of up to so many measurements are features.
DEGREE = 4
#: About the radius that cross-validation likes best.
BETA = 150.0
TOL = 1e-4
#: The paper's step converges slowly: it gets so many rounds.
CLASSIC_ROUNDS = 1000
#: What the two runs are called.
CORRECTIVE, CLASSIC = "corrective step", "classic step (the paper)"


class Data(NamedTuple):
    """A regression problem with many named features."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    names: list[str]


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where to write files.")
    ] = Path("atomcast-demo"),
    nodes: Annotated[int, typer.Option(help="How many nodes share the features.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    verbosity: Verbosity = 0,
    debug: Debug = False,
) -> None:
    """Fit a lasso on 10 simulated nodes, beside the paper's own step."""
    with clear_errors(debug), log_on_stderr(verbosity):
        from atomcast._checks import check_count
        from atomcast.loop.interrupting import all_or_nothing

        check_count("--nodes", nodes, "how many nodes share the features")
        if out.exists() and not out.is_dir():
            raise ValueError(f"--out {out} is a file: give the name of a folder")
        out.mkdir(parents=True, exist_ok=True)
        data = load_data()
        with all_or_nothing():
            runs = {
                CORRECTIVE: _timed_fit(data, nodes, "corrective"),
                CLASSIC: _timed_fit(data, nodes, "classic", max_rounds=CLASSIC_ROUNDS),
            }
        files = _write_files(out, runs, data, nodes)
        summaries = {label: _summary(model, seconds) for label, (model, seconds) in runs.items()}
        if as_json:
            _print_json(data, summaries, files)
        else:
            _print_tables(data, runs, summaries, files)


def load_data() -> Data:
    """The diabetes data (442 patients, 10 measurements) with all products of the measurements."""
    from sklearn.datasets import load_diabetes
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    diabetes = load_diabetes()
    products = PolynomialFeatures(DEGREE, include_bias=False)
    X = products.fit_transform(StandardScaler().fit_transform(diabetes.data))
    names = products.get_feature_names_out(diabetes.feature_names)
    # The sex takes two values, so its powers say nothing that the sex itself does not.
    new = [j for j, name in enumerate(names) if "sex^" not in name]
    X = StandardScaler().fit_transform(X[:, new])
    return Data(X, diabetes.target, [str(names[j]).replace(" ", "*") for j in new])


def _timed_fit(data: Data, nodes: int, step: str, **limits: Any) -> tuple[Lasso, float]:
    """Fit with a step; the classic one sends an atom each time it wins, as Algorithm 3 has it."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from atomcast import Lasso, LocalCluster, Shards, Solver

    cluster = LocalCluster(nodes, resend=step == "classic")
    solver = Solver(step=step, tol=TOL, **limits)
    model = Lasso(BETA, cluster=cluster, solver=solver)
    shards = Shards.split(data.X, nodes, names=data.names)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
        model.fit(shards, data.y)
    return model, time.perf_counter() - start


def _write_files(
    out: Path, runs: dict[str, tuple[Lasso, float]], data: Data, nodes: int
) -> dict[str, str]:
    """Save the model, its trace, and a picture of both runs if matplotlib is installed."""
    from atomcast import save_model
    from atomcast.plots.drawing import plot_convergence

    model = runs[CORRECTIVE][0]
    files = {"model": out / "model.safetensors", "trace": out / "trace.csv"}
    save_model(model, files["model"])
    model.result_.trace.to_csv(files["trace"])
    traces = {label: run[0].result_.trace for label, run in runs.items()}
    rows, columns = data.X.shape
    title = f"Lasso, {rows:,} rows, {columns:,} features on {nodes} nodes"
    try:
        plot_convergence(traces, out / "convergence.png", tol=TOL, title=title)
        files["picture"] = out / "convergence.png"
    except ImportError as error:
        typer.echo(f"atomcast: no picture: {error}", err=True)
    return {name: str(path) for name, path in files.items()}


def _summary(model: Lasso, seconds: float) -> dict[str, Any]:
    from atomcast.report.summary import outcome
    from atomcast.saving.certificate import certificate_of

    figures = {"atoms": len(model.result_.atom_ids), "seconds": seconds}
    return outcome(certificate_of(model)) | figures


def _print_json(data: Data, summaries: dict[str, dict[str, Any]], files: dict[str, str]) -> None:
    from atomcast.report.printing import print_json

    rows, features = data.X.shape
    runs = dict(zip(("corrective", "classic"), summaries.values(), strict=True))
    print_json({"rows": rows, "features": features, "beta": BETA, "runs": runs, "files": files})


def _print_tables(
    data: Data,
    runs: dict[str, tuple[Lasso, float]],
    summaries: dict[str, dict[str, Any]],
    files: dict[str, str],
) -> None:
    from atomcast.report.printing import print_table
    from atomcast.report.summary import outcome_rows

    rows, features = data.X.shape
    nodes = summaries[CORRECTIVE]["nodes"]
    title = f"Lasso (beta {BETA:g}): {rows:,} rows, {features:,} features on {nodes} nodes"
    shown = [{k: v for k, v in s.items() if k != "nodes"} for s in summaries.values()]
    print_table(title, ("", *summaries), outcome_rows(*shown))
    print(_comparison(*(model.result_.trace for model, _ in runs.values())))
    print()
    print_table("Files", None, list(files.items()), text_columns=(0, 1))
    print(f"Next: atomcast inspect {files['model']}")


def _comparison(trace: Trace, classic: Trace) -> str:
    """What the corrective step spent to be as good as the classic one became."""
    from atomcast.plots.drawing import column

    gap = float(column(classic, "relative_gap").min())
    there = int((column(trace, "relative_gap") <= gap).argmax())
    then = int(column(classic, "relative_gap").argmin())
    text = (
        f"The classic step came to a relative gap of {gap:.1e} in {classic.round[then]:,} rounds; "
        f"the corrective step was there after {trace.round[there]:,}"
    )
    if trace.values[there]:
        ratio = classic.values[then] / trace.values[there]
        text += f", having sent {ratio:.0f} times fewer values"
    return fill(text + ".", 79)
