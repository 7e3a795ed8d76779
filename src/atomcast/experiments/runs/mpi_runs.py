"""Runs on MPI ranks of this machine, against a stopwatch.

Every rank runs the loop by itself, as in a program that users start with mpirun, on a core of its
own; the program that wants the numbers waits meanwhile, and takes no core from them.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from atomcast.cluster.mpi.channel import Listener
from atomcast.cluster.mpi.processes import rank_command, rank_environment
from atomcast.cluster.mpi.stored_shards import store
from atomcast.data.shards import Shards
from atomcast.errors import ClusterError
from atomcast.loop.trace import Row, Trace
from atomcast.problems.problem import Problem

#: The file in which rank 0 says what was measured.
OUTCOME = "outcome.json"


class Measured(NamedTuple):
    """What the ranks measured.

    `trace` has the seconds up to each round, on rank 0. `alone` has those of single kernel columns,
    which all ranks compute at the same time, each over its own examples, with no algorithm and no
    messages around them: how much N processes can gain on this machine.
    """

    trace: Trace
    alone: list[float]


def mpi_run(problem: Problem, shards: Shards, rounds: int) -> Measured:
    """A run of the classic step on as many ranks as there are shards, one core each.

    Raises
    ------
    ClusterError
        If the ranks do not start, or fail.
    """
    with tempfile.TemporaryDirectory(prefix="atomcast-") as name:
        folder = Path(name)
        store(shards, problem.axis, folder)
        with closing(Listener()) as listener:
            arguments = (str(folder), str(rounds), str(listener.path))
            done = subprocess.Popen(
                rank_command(shards.nodes, (), "atomcast.experiments.runs.mpi_rank", *arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=rank_environment(threads=1),
            )
            channel = listener.accept(lambda: done.poll() is None)
            if channel is not None:
                channel.send(problem)
            output, _ = done.communicate()
        if done.returncode or not (folder / OUTCOME).exists():
            last = output.decode(errors="replace").strip()[-2000:]
            raise ClusterError(f"the ranks did not finish. The last that mpirun wrote:\n{last}")
        outcome = json.loads((folder / OUTCOME).read_bytes())
    trace = Trace()
    for row in outcome["rows"]:
        trace.append(Row(*row))
    return Measured(trace, outcome["alone"])
