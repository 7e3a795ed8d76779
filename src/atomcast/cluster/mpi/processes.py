"""The processes of `MPICluster.launch`: how ranks are started, talked to, and ended."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import atomcast
from atomcast.cluster.mpi.channel import Channel, Listener
from atomcast.cluster.mpi.failures import NO_MPI4PY, RankError
from atomcast.cluster.mpi.job import job_rank
from atomcast.errors import ClusterError, StallError
from atomcast.loop.session import Closing

logger = logging.getLogger(__name__)

#: How long ranks may take to end by themselves before they are made to.
PATIENCE = 10.0
#: How much longer than the ranks themselves the program waits for a rank that stalls.
GRACE = 15.0
#: How much longer than a round the ranks may take to start: Python has to load on each of them.
START = 60.0
#: Settings of Open MPI with which a rank that waits leaves its core to others.
GIVE_WAY = {
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
}
#: Settings of Open MPI with which ranks of one machine talk through its memory and nothing else,
#: so that they listen on no network.
ONE_MACHINE = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm"}
#: In a job of these schedulers, or with these options, mpirun may use other machines as well.
_SCHEDULERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE")
_HOSTS = ("host", "H", "hostfile", "machinefile", "add-host", "add-hostfile")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Ranks(Closing):
    """The processes that mpirun started, and the connection to rank 0.

    Parameters
    ----------
    nodes, threads : int
        How many ranks, and how many threads each of them uses.
    options : list of str
        Further options for mpirun.
    folder : Path
        Where the ranks find the problem, and where their output goes.
    deadline : float or None
        How many seconds a rank may be waited for.
    """

    def __init__(
        self, nodes: int, threads: int, options: list[str], folder: Path, deadline: float | None
    ) -> None:
        self._log = folder / "log"
        #: The round that is waited for, for messages; None before the first.
        self.round: int | None = None
        # Ranks notice by themselves that one of them stalls, and say so, unless there is but one.
        self._limit = deadline if deadline is None or nodes == 1 else deadline + GRACE
        self._channel: Channel | None = None
        listener = Listener()
        try:
            arguments = (str(folder), str(listener.path))
            command = rank_command(nodes, options, "atomcast.cluster.mpi.worker", *arguments)
            # Waiting ranks must not keep the cores busy: this program calls callbacks meanwhile.
            environment = {**GIVE_WAY, **rank_environment(threads, options)}
            with self._log.open("wb") as log:
                # In a session of their own, so that Ctrl-C reaches this program alone.
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                )
            logger.debug("process %d: %s", self._process.pid, " ".join(command))
            self._channel = self._connected(listener, deadline)
        finally:
            listener.close()
        self._channel.limit(self._limit)

    def _connected(self, listener: Listener, deadline: float | None) -> Channel:
        """The connection to rank 0, which comes when all ranks have started."""
        limit = None if deadline is None else deadline + START
        try:
            channel = listener.accept(lambda: self._process.poll() is None, limit)
        except TimeoutError:
            self.end(orderly=False)
            late = f"before the first round: the ranks have not started within {limit:g} s"
            raise StallError(self._explained(late)) from None
        except BaseException:
            self.end(orderly=False)
            raise
        if channel is None:
            raise ClusterError(self._explained("the ranks did not start"))
        return channel

    def send(self, message: bytes) -> None:
        """Tell rank 0 something."""
        assert self._channel is not None
        try:
            self._channel.send_bytes(message)
        except ConnectionError:
            raise self._lost() from None

    def receive(self) -> tuple[str, Any]:
        """Wait for what rank 0 says: of what kind, and what; an error of the ranks is raised."""
        assert self._channel is not None
        try:
            kind, said = self._channel.receive()
        except EOFError:
            self._wait()
            raise self._lost() from None
        except TimeoutError:
            where = "before the first round" if self.round is None else f"round {self.round}"
            raise StallError(f"{where}: node 0 has not answered for {self._limit:g} s") from None
        if kind == "error":
            raise said
        return kind, said

    def _lost(self) -> RankError | StallError:
        """Why the ranks are gone: their own last word if they had one, or all that was written."""
        text = self._log.read_text(encoding="utf-8", errors="replace")
        stall = re.search(rf"{StallError.__name__}: (.+)", text)
        if stall is not None:
            return StallError(stall[1])
        return RankError(self._explained("the ranks have ended"))

    def end(self, orderly: bool) -> None:
        """Let the ranks end, or make them."""
        try:
            if orderly and self._channel is not None:
                self._channel.send_bytes(b"")  # instead of another problem
            else:
                self._process.terminate()
        except OSError:  # they are gone already, or no longer listen
            self._process.terminate()
        finally:
            self._wait()
            if self._channel is not None:
                self._channel.close()

    def close(self, error: BaseException | None) -> None:
        """Let the ranks end; after an error, make them."""
        self.end(orderly=error is None)

    def _wait(self) -> None:
        """Wait for mpirun to end; it ends its ranks, and they end if it is killed."""
        for stop in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(PATIENCE)
                return
            except subprocess.TimeoutExpired:
                stop()
        self._process.wait()

    def _explained(self, what: str) -> str:
        """The message for ranks that are gone, with the last that they wrote."""
        text = self._log.read_text(encoding="utf-8", errors="replace").strip()
        advice = ""
        if "not enough slots" in text:
            advice = (
                ". There are more ranks than cores: start fewer, or allow it with "
                'options=["--map-by", ":OVERSUBSCRIBE"], on the command line with '
                "--mpi-option=--map-by --mpi-option=:OVERSUBSCRIBE"
            )
        return f"{what}{advice}. The last that mpirun wrote:\n{text[-2000:]}"


def find_mpirun() -> str:
    """The mpirun of this environment, or else the one on the path."""
    if job_rank() is not None:
        raise ClusterError(
            "this program was itself started by mpirun: use MPICluster() here, "
            "MPICluster.launch is for programs that were not"
        )
    if find_spec("mpi4py") is None:
        raise ImportError(NO_MPI4PY)
    own = Path(sysconfig.get_path("scripts"), "mpirun")
    found = str(own) if own.exists() else shutil.which("mpirun")
    if found is None:
        raise ImportError(
            "MPICluster.launch needs mpirun: install it with pip install 'atomcast[mpi]', "
            "or load your cluster's MPI module"
        )
    return found


def rank_command(nodes: int, options: Sequence[str], module: str, *arguments: str) -> list[str]:
    """The command that runs a module of this package on so many ranks.

    The system may move ranks between cores, unless the options say otherwise: mpirun would bind
    those of every job to the same first cores, also where others are free or it may use no others.
    """
    # mpirun takes the option once only.
    bound = any(option.lstrip("-") == "bind-to" for option in options)
    free = () if bound else ("--bind-to", "none")
    start = (find_mpirun(), "-n", str(nodes), *free, *options)
    return [*start, sys.executable, "-P", "-m", module, *arguments]


def rank_environment(threads: int, options: Sequence[str] = ()) -> dict[str, str]:
    """What ranks find around them: this atomcast, so many threads, and no network to listen on.

    What the user has set for Open MPI stays, and so does its own choice where mpirun may use other
    machines.
    """
    elsewhere = any(name in os.environ for name in _SCHEDULERS)
    elsewhere |= any(option.lstrip("-") in _HOSTS for option in options)
    environment = {**({} if elsewhere else ONE_MACHINE), **os.environ}
    for name in _THREADS:
        environment[name] = str(threads)
    home = str(Path(atomcast.__file__).parents[1])
    paths = [home, environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return environment
