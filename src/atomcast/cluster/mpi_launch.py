"""MPI ranks for a plain program: started when a fit begins, gone when it ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from threadpoolctl import threadpool_limits

import atomcast
from atomcast._checks import check_count
from atomcast.atoms.atom import Atom
from atomcast.cluster.account import Account, new_winners
from atomcast.cluster.agreeing import check_digests, state_digest
from atomcast.cluster.base import error_in_flight
from atomcast.cluster.channel import Channel, Listener
from atomcast.cluster.mpi_errors import RankError
from atomcast.cluster.plain import pack
from atomcast.cluster.stored_shards import store
from atomcast.cluster.validation import raise_described, refuse_balanced, refuse_restricted
from atomcast.data.shards import Shards
from atomcast.network.ledger import Ledger
from atomcast.problem import Problem
from atomcast.protocol import Agreement, Request
from atomcast.replica import Replica
from atomcast.result import Status

#: How long ranks may take to end by themselves before they are made to.
PATIENCE = 10.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class LaunchedCluster:
    """MPI ranks that a plain program starts on this machine; made by `MPICluster.launch`.

    The data goes to the ranks by files that they map into memory. The program itself decides when
    to stop, shows progress and calls callbacks, as without a cluster.

    Parameters
    ----------
    nodes : int
        How many ranks.
    threads : int, default=1
        How many threads each of them uses for linear algebra; so does this program meanwhile, so
        that all round in the same way.
    options : sequence of str, default=()
        Further options for mpirun, e.g. ["--map-by", ":OVERSUBSCRIBE"] for more ranks than cores.
    folder : path, optional
        Where the data is put for the ranks, by default in the folder for temporary files.
    """

    def __init__(
        self,
        nodes: int,
        *,
        threads: int = 1,
        options: Sequence[str] = (),
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.nodes = check_count("nodes", nodes, "how many ranks to start")
        self.threads = check_count("threads", threads, "threads of each rank")
        if isinstance(options, str):
            raise TypeError(f"options must be a list of texts, got {options!r}: split it")
        self.options = list(options)
        self.folder = None if folder is None else os.fspath(folder)

    def open(self, problem: Problem, shards: Shards) -> LaunchedSession:
        """Start the ranks, which load their shards and check them."""
        return LaunchedSession(self, problem, shards)

    def __repr__(self) -> str:
        return f"MPICluster.launch(nodes={self.nodes})"


class LaunchedSession:
    """The program's side of ranks that it has started."""

    speaks = True

    def __init__(self, cluster: LaunchedCluster, problem: Problem, shards: Shards) -> None:
        if shards.nodes != cluster.nodes:
            raise ValueError(
                f"the data is cut into {shards.nodes} shards, but the cluster has "
                f"{cluster.nodes} ranks; use MPICluster.launch(nodes={shards.nodes})"
            )
        self.nodes = cluster.nodes
        self._account = Account(self.nodes)
        self._outer = sys.exc_info()[1]
        self._limits = threadpool_limits(limits=cluster.threads)
        self._folder = Path(tempfile.mkdtemp(prefix="atomcast-", dir=cluster.folder))
        self._ranks: Ranks | None = None
        try:
            self._hand_over(problem, shards)
            self._ranks = Ranks(cluster, self._folder)
            self.n = int(self._told()["n"])
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def _hand_over(self, problem: Problem, shards: Shards) -> None:
        """Write down the problem, and the data unless it is in files already."""
        files = shards.arguments() if hasattr(shards, "arguments") else None
        if files is None:
            shards.validate(problem.axis)
            (self._folder / "shards").mkdir()
            store(shards, problem.axis, self._folder / "shards")
        (self._folder / "problem").write_bytes(pack({"problem": problem, "files": files}))

    @property
    def ledger(self) -> Ledger:
        """The account of the logical star."""
        return self._account.ledger

    def _told(self) -> Any:
        """What rank 0 says next; an error of the ranks is raised here."""
        assert self._ranks is not None
        said = self._ranks.receive()
        if "error" in said:
            kind, message = said["error"]
            if kind == RankError.__name__:
                raise RankError(message)
            raise_described((kind, message), "")
        return said

    def begin(self, replica: Replica, settings: Mapping[str, Any]) -> None:
        """Tell the ranks what to start from."""
        refuse_restricted(replica)
        refuse_balanced(replica)
        assert self._ranks is not None
        start = {
            "problem": replica.problem,
            "step": replica.step,
            "tol": replica.tol,
            "selection": replica.selection,
            "weights": replica.active.weights.copy(),
            "settings": dict(settings),
        }
        self._ranks.send(pack(start))

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Learn what the ranks proposed, and agree as they did."""
        said = self._told()
        check_digests([said["digest"]] * self.nodes + [state_digest(replica)], replica.round)
        return self._account.agree(replica, said["proposals"], request.count)

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Receive the new winners."""
        new = new_winners(replica, agreement)
        if not new:
            return []
        messages = [content.data for content in self._told()["atoms"]]
        return self._account.receive([owner for owner, _ in new], messages)

    def vote(self, status: Status | None) -> Status | None:
        """Decide for the ranks."""
        assert self._ranks is not None
        self._ranks.send(pack(status is None))
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        error = error or error_in_flight(self._outer)
        try:
            if self._ranks is not None:
                self._ranks.end(orderly=error is None)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._limits.restore_original_limits()


class Ranks:
    """The processes that mpirun started, and the connection to rank 0."""

    def __init__(self, cluster: LaunchedCluster, folder: Path) -> None:
        self._log = folder / "log"
        self._channel: Channel | None = None
        listener = Listener()
        try:
            command = [
                *(find_mpirun(), "-n", str(cluster.nodes), "--bind-to", "none", *cluster.options),
                *(sys.executable, "-P", "-m", "atomcast.cluster.mpi_worker"),
                *(str(folder), str(listener.path)),
            ]
            with self._log.open("wb") as log:
                # In a session of their own, so that Ctrl-C reaches this program alone.
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=_environment(cluster),
                    start_new_session=True,
                )
            try:
                self._channel = listener.accept(lambda: self._process.poll() is None)
            except BaseException:
                self.end(orderly=False)
                raise
        finally:
            listener.close()
        if self._channel is None:
            raise RuntimeError(self._explained("the ranks did not start"))

    def send(self, message: bytes) -> None:
        """Tell rank 0 something."""
        assert self._channel is not None
        try:
            self._channel.send_bytes(message)
        except ConnectionError:
            raise RankError(self._explained("the ranks have ended")) from None

    def receive(self) -> Any:
        """Wait for what rank 0 says."""
        assert self._channel is not None
        try:
            return self._channel.receive()
        except EOFError:
            self._wait()
            raise RankError(self._explained("the ranks have ended")) from None

    def end(self, orderly: bool) -> None:
        """Let the ranks end, or make them."""
        if self._channel is not None:
            if orderly and self._process.poll() is None:
                self._channel.send_bytes(b"")
            else:
                self._process.terminate()
            self._channel.close()
        else:
            self._process.terminate()
        self._wait()

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
                'options=["--map-by", ":OVERSUBSCRIBE"]'
            )
        return f"{what}{advice}. The last that mpirun wrote:\n{text[-2000:]}"


def find_mpirun() -> str:
    """The mpirun of this environment, or else the one on the path."""
    inside = "OMPI_COMM_WORLD_SIZE" in os.environ or "PMI_SIZE" in os.environ
    if inside:
        raise RuntimeError(
            "this program was itself started by mpirun: use MPICluster() here, "
            "MPICluster.launch is for programs that were not"
        )
    own = Path(sysconfig.get_path("scripts"), "mpirun")
    found = str(own) if own.exists() else shutil.which("mpirun")
    if found is None:
        raise ImportError(
            "MPICluster.launch needs mpirun: install it with pip install 'atomcast[mpi]', "
            "or load your cluster's MPI module"
        )
    return found


def _environment(cluster: LaunchedCluster) -> dict[str, str]:
    """What the ranks find around them: this atomcast, and so many threads."""
    environment = dict(os.environ)
    for name in _THREADS:
        environment[name] = str(cluster.threads)
    home = str(Path(atomcast.__file__).parents[1])
    paths = [home, environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    # Waiting ranks must not keep the cores busy: this program takes its own steps meanwhile.
    environment.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    environment.setdefault("OMPI_MCA_threads_pthreads_yield_strategy", "nanosleep")
    return environment
