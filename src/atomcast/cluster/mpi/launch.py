"""MPI ranks for a plain program: started when a fit begins, gone when it ends."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from atomcast._checks import check_count
from atomcast.cluster.consistency import check_digests, state_digest
from atomcast.cluster.machine import log_nodes
from atomcast.cluster.mpi.errors import RankError
from atomcast.cluster.mpi.processes import GO_ON, STOP, TELL_FINGERPRINT, Ranks
from atomcast.cluster.mpi.stored_shards import store
from atomcast.cluster.mpi.termination import clean_if_terminated, no_longer
from atomcast.cluster.plain import pack
from atomcast.cluster.validation import ShardReport, raise_described, refuse_balanced
from atomcast.data.shards import Shards
from atomcast.loop.replica import Replica
from atomcast.loop.session import DEADLINE, Cluster, Session, check_deadline, error_in_flight
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Request
from atomcast.messages.status import Status
from atomcast.network.accountant import star_accountant
from atomcast.network.ledger import Ledger
from atomcast.problems.problem import Problem

logger = logging.getLogger(__name__)


class LaunchedCluster(Cluster):
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
        Further options for mpirun, e.g. ["--map-by", ":OVERSUBSCRIBE"] for more ranks than cores,
        or ["--bind-to", "core"] to keep each rank on a core of a machine that does nothing else.
    folder : path, optional
        Where the data is put for the ranks, by default in the folder for temporary files.
    deadline : float or None, default=600.0
        How many seconds a rank is waited for in one round before the fit ends with an error that
        names it; None: for ever.
    """

    def __init__(
        self,
        nodes: int,
        *,
        threads: int = 1,
        options: Sequence[str] = (),
        folder: str | os.PathLike[str] | None = None,
        deadline: float | None = DEADLINE,
    ) -> None:
        self.nodes = check_count("nodes", nodes, "how many ranks to start")
        self.threads = check_count("threads", threads, "threads of each rank")
        if isinstance(options, str):
            raise TypeError(f"options must be a list of texts, got {options!r}: split it")
        self.options = list(options)
        self.folder = None if folder is None else os.fspath(folder)
        self.deadline = check_deadline(deadline)

    def open(self, problem: Problem, shards: Shards) -> LaunchedSession:
        """Start the ranks, which load their shards and check them."""
        return LaunchedSession(self, problem, shards)

    def __repr__(self) -> str:
        return f"MPICluster.launch(nodes={self.nodes})"


class LaunchedSession(Session):
    """The program's side of ranks that it has started."""

    speaks = True

    def __init__(self, cluster: LaunchedCluster, problem: Problem, shards: Shards) -> None:
        if shards.nodes != cluster.nodes:
            raise ValueError(
                f"the data is cut into {shards.nodes} shards, but the cluster has "
                f"{cluster.nodes} ranks; use MPICluster.launch(nodes={shards.nodes})"
            )
        self.nodes = cluster.nodes
        self._account = star_accountant(self.nodes, shards.party_names, problem.d)
        self._outer = sys.exc_info()[1]
        self._folder = Path(tempfile.mkdtemp(prefix="atomcast-", dir=cluster.folder))
        clean_if_terminated(self._clean)
        self._limits = threadpool_limits(limits=cluster.threads)
        self._ranks: Ranks | None = None
        self._fingerprint: str | None = None
        self._stopped = False
        try:
            self._hand_over(problem, shards, cluster.deadline)
            self._ranks = Ranks(
                cluster.nodes, cluster.threads, cluster.options, self._folder, cluster.deadline
            )
            told = self._told()
            self.n, self.d = int(told["n"]), int(told["d"])
            log_nodes(logger, [ShardReport(**r) for r in told["reports"]], cluster.threads)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def _hand_over(self, problem: Problem, shards: Shards, deadline: float | None) -> None:
        """Write down the problem, and the data unless it is in files already."""
        files = shards.arguments()
        if files is None:
            shards.validate(problem.axis)
            (self._folder / "shards").mkdir()
            store(shards, problem.axis, self._folder / "shards")
        order = {"problem": problem, "files": files, "deadline": deadline}
        (self._folder / "problem").write_bytes(pack(order))

    @property
    def ledger(self) -> Ledger:  # type: ignore[override]  # nobody sets it
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

    def begin(self, replica: Replica, settings: Mapping[str, Any]) -> Replica:
        """Tell the ranks what to start from."""
        refuse_balanced(replica)
        assert self._ranks is not None
        self._ranks.round, self._stopped = None, False
        start = {
            "problem": replica.problem,
            "step": replica.step,
            "tol": replica.tol,
            "selection": replica.selection,
            "weights": replica.active.weights.copy(),
            "settings": dict(settings),
        }
        self._ranks.send(pack(start))
        return replica

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Learn what the ranks proposed, and agree as they did."""
        assert self._ranks is not None
        self._ranks.round = replica.round
        said = self._told()
        check_digests([said["digest"]] * self.nodes + [state_digest(replica)], replica.round)
        replica.radius.update(said.get("radius", {}))
        return self._account.agree(said["proposals"], request.count, replica.ledger_round)

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Receive the new winners."""
        new = agreement.new_to(replica.active)
        if not new:
            return []
        messages = [content.data for content in self._told()["atoms"]]
        lengths = [replica.active.length_of(id, self.d) for _, id in new]
        return self._account.receive([owner for owner, _ in new], messages, lengths)

    def leave(self) -> None:
        """The ranks leave when they are told to."""

    def vote(self, status: Status | None) -> Status | None:
        """Decide for the ranks."""
        self._say(GO_ON if status is None else STOP)
        self._stopped = status is not None
        return status

    def _say(self, decision: int) -> None:
        assert self._ranks is not None
        self._ranks.send(pack(decision))

    def shared(self, read: Callable[[], bytes]) -> bytes:
        """Read a checkpoint, and let the ranks have it too."""
        assert self._ranks is not None
        content = read()
        self._ranks.send(content)
        self._fingerprint = self._told()["fingerprint"]
        return content

    def fingerprint(self) -> str:
        """What tells these atoms from others; the ranks look at their own."""
        if self._fingerprint is None:
            if self._stopped:
                raise ValueError(
                    "the ranks have ended the run, and no snapshot was asked for before: put "
                    "Checkpoint(path) among the callbacks"
                )
            self._say(TELL_FINGERPRINT)
            self._fingerprint = self._told()["fingerprint"]
        return str(self._fingerprint)

    def owners(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rank that holds each of these atoms, shape (k,); -1 where there is none."""
        owners: NDArray[np.int64] = self._told()["owners"]
        return owners

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
            self._clean()
            no_longer(self._clean)
            self._limits.restore_original_limits()

    def _clean(self) -> None:
        """Take the data away; the ranks end when they notice that the program is gone."""
        shutil.rmtree(self._folder, ignore_errors=True)
