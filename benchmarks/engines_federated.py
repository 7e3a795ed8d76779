"""How long a round takes between organisations: three nodes as processes, over TLS on loopback."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from engines_rounds import LENGTHS, summary

NAMES = ("north", "south", "east")
HERE = "127.0.0.1"
REPEATS = 300
SETTINGS = """
name = "{name}"
coordinator = "coordinator"
address = "{address}"
certificates = "{keys}"
[data.cohort]
path = "data.npy"
[policy]
atoms_per_run = 1000
rounds_per_run = 100000
"""


def show_federated():
    """Print the table."""
    print(f"\nfederated: {len(NAMES)} nodes, milliseconds, median and least of {REPEATS}")
    print(f"{'d':>7}{'transport':>20}{'question':>20}{'fit':>20}")
    for d in LENGTHS:
        with tempfile.TemporaryDirectory() as folder:
            found = federated_times(Path(folder), d)
        cells = (f"{median / 1e3:>12.2f} {least / 1e3:>7.2f}" for median, least in found)
        print(f"{d:>7}" + "".join(cells), flush=True)


def federated_times(folder, d):
    """The times of an echo, of a question, and of a round of a fit, in microseconds."""
    from atomcast import FederatedCluster, Lasso, Solver
    from atomcast.federated.keys import make_ca, make_keys, sign_request

    keys = folder / "keys"
    make_ca(keys)
    for name in ("coordinator", *NAMES):
        sign_request(keys, make_keys(name, keys, [HERE]))
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal((d, 64)) for _ in NAMES]
    y = np.hstack(parts) @ rng.standard_normal(192)
    terms = {"rounds": 100_000, "atoms": 1000, "runs": 2, "radius": (49.0, 50.0)}
    with FederatedCluster(f"{HERE}:0", NAMES, keys, terms=terms) as cluster:
        with nodes(folder, parts, cluster.listen(), echo=True):
            transport = echo_times(cluster)
        stamps = []
        watch = Solver(
            tol=1e-12,
            max_rounds=100,
            atoms_per_round=1,
            callbacks=[lambda state: stamps.append(time.perf_counter())],
        )
        with nodes(folder, parts, cluster.listen()), people(folder):
            shards = cluster.shards("cohort")
            model = Lasso(50.0, fit_intercept=False, cluster=cluster, solver=watch)
            with contextlib.suppress(Warning):
                model.fit(shards, y)
            fit = summary(np.diff(stamps))
            question = question_times(cluster, shards, y)
    return transport, question, fit


def echo_times(cluster):
    """One kilobyte to every node and back."""
    from atomcast.federated.kinds import PartialPrediction

    calls, message = cluster.calls(), PartialPrediction(np.zeros(125))
    return timed(lambda k: calls.all(message))


def question_times(cluster, shards, y):
    """Questions that differ in their threshold alone, so that each is answered anew."""
    from atomcast.domains.balls import L1Ball
    from atomcast.loop.replica import Replica, Tolerance
    from atomcast.loop.session import RunSpec
    from atomcast.messages.proposals import Request
    from atomcast.objectives import SquaredError
    from atomcast.problems.features import explicit_problem
    from atomcast.steps import STEPS

    problem = explicit_problem(SquaredError(y), L1Ball(49.0))
    replica = Replica(problem, STEPS["corrective"]("auto"), Tolerance(1e-9))
    with cluster.open(problem, shards) as session:
        session.begin(replica, RunSpec())
        return timed(lambda k: session.propose(replica, Request(1, threshold=-1.0 - k)))


def timed(call):
    seconds = []
    for k in range(-20, REPEATS):
        start = time.perf_counter()
        call(k)
        if k >= 0:
            seconds.append(time.perf_counter() - start)
    return summary(seconds)


@contextlib.contextmanager
def nodes(folder, parts, port, echo=False):
    """A process for each node."""
    processes = []
    for name, part in zip(NAMES, parts, strict=True):
        home = folder / name
        home.mkdir(exist_ok=True)
        np.save(home / "data.npy", part)
        told = {"name": name, "address": f"{HERE}:{port}", "keys": folder / "keys"}
        (home / "node.toml").write_text(SETTINGS.format(**told))
        command = [sys.executable, __file__] if echo else [sys.executable, "-m", "atomcast.cli"]
        command += [] if echo else ["node", "run", "--config"]
        process = subprocess.Popen([*command, str(home / "node.toml")], stdout=subprocess.DEVNULL)
        processes.append(process)
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def people(folder):
    """Somebody at each node who approves whatever is offered."""
    from atomcast.federated.consent import Consents

    stop = threading.Event()

    def approve():
        while not stop.wait(0.1):
            for name in NAMES:
                consents = Consents(folder / name / "state")
                for offer in consents.offers():
                    consents.approve(offer.id, "the benchmark")

    threading.Thread(target=approve, daemon=True).start()
    yield
    stop.set()


def echo(config):
    """A node that sends back what it gets: what is left is transport."""
    import signal

    from atomcast.federated.attending import attend
    from atomcast.federated.identity import Credentials
    from atomcast.federated.party import Node
    from atomcast.federated.policy import read_config

    class Echo(Node):
        def answer(self, message):
            return message

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    settings = read_config(config)
    attend(Echo(settings, Credentials(settings.certificates, settings.name)), stop)


if __name__ == "__main__":
    echo(sys.argv[1])
