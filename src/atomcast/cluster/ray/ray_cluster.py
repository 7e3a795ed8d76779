"""A cluster of Ray actors: one node an actor, on one machine or many."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from atomcast._checks import check_count, check_positive
from atomcast.cluster.pace import check_slow_only
from atomcast.cluster.summing import refuse_sums
from atomcast.data.shards import Shards
from atomcast.loop.session import DEADLINE, Cluster, check_deadline
from atomcast.network.faults import Faults
from atomcast.problems.problem import Problem

if TYPE_CHECKING:
    from atomcast.cluster.ray.ray_session import RaySession

logger = logging.getLogger(__name__)

#: How long an address may take to answer, in seconds.
ANSWER = 5.0


class RayCluster(Cluster):
    """Nodes that are Ray actors, restarted and rebuilt if they are lost.

    If Ray runs in this program already, it is used. Otherwise it is started when a fit begins, on
    this machine or at `address`, and stays until the program ends (or calls `ray.shutdown()`).
    The actors wait for the next fit until `close()`, or until this object is no longer used.

    Parameters
    ----------
    nodes : int
        How many nodes.
    address : str, optional
        A running Ray cluster: "host:port", "ray://host:port" or "auto". By default the one that
        the variable RAY_ADDRESS names, else a new one on this machine alone.
    cpus : float, default=1.0
        How many cores each node takes of what Ray has.
    resources : dict or list of dicts, optional
        What else a node needs, the same for all or one for each: {"site_b": 1} puts it on a
        machine that was started with that resource.
    node_ids : list of str or None, optional
        The Ray node on which each node should run, where its data is. If that is gone, another
        one takes over.
    threads : int, default=1
        How many threads each node uses for linear algebra; so does this program meanwhile, so
        that all round in the same way.
    patience : float, default=60.0
        How many seconds a node may take to find a place, or to come back after it was lost.
    deadline : float or None, default=600.0
        How many seconds a node that has its place may take for its work in one round, or to load
        its data, before the fit ends with an error that names it; None: for ever.
    asynchronous : bool, default=False
        Let every node work at its own pace: nobody waits for the slowest but for the certificate
        at the end. For the corrective step.
    staleness : int, default=4
        An answer about an iterate more than so many steps old is not used in an asynchronous run:
        the node first looks again at the atoms that were its best.
    compute : float, optional
        To try things out: seconds that a node takes at least to score one atom. It sleeps.
    faults : Faults, optional
        To try things out: nodes that take several times as long, `Faults(slow={3: 10.0})`.

    Examples
    --------
    >>> from atomcast import Lasso, RayCluster  # doctest: +SKIP
    >>> model = Lasso(beta=16.0, cluster=RayCluster(nodes=4)).fit(X, y)  # doctest: +SKIP
    """

    def __init__(
        self,
        nodes: int,
        address: str | None = None,
        *,
        cpus: float = 1.0,
        resources: Mapping[str, float] | Sequence[Mapping[str, float]] | None = None,
        node_ids: Sequence[str | None] | None = None,
        threads: int = 1,
        patience: float = 60.0,
        deadline: float | None = DEADLINE,
        asynchronous: bool = False,
        staleness: int = 4,
        compute: float | None = None,
        faults: Faults | None = None,
    ) -> None:
        self.nodes = check_count("nodes", nodes, "how many nodes the cluster has")
        self._idle: list[Any] = []
        self._job: str | None = None
        self.address = address
        self.cpus = float(cpus)
        self.resources = resources
        self.node_ids = node_ids
        self.threads = check_count("threads", threads, "threads of each node")
        self.patience = check_positive("patience", patience, "seconds to wait for a lost node")
        self.deadline = check_deadline(deadline)
        self.asynchronous = asynchronous
        self.staleness = check_count("staleness", staleness, "steps that may be missed", minimum=0)
        if compute is not None:
            check_positive("compute", compute, "seconds to score one atom, None: what it takes")
        self.compute = compute
        self.faults = check_slow_only(faults, self.nodes)
        for name, given in (("resources", resources), ("node_ids", node_ids)):
            if given is None or isinstance(given, Mapping) or len(given) == self.nodes:
                continue
            raise ValueError(f"{name} has {len(given)} entries, but there are {nodes} nodes")

    def options(self, node: int) -> dict[str, Any]:
        """What Ray is asked for one node."""
        resources = self.resources
        if resources is not None and not isinstance(resources, Mapping):
            resources = resources[node]
        asked: dict[str, Any] = {"num_cpus": self.cpus, "max_restarts": -1, "max_task_retries": 0}
        if resources:
            asked["resources"] = dict(resources)
        home = None if self.node_ids is None else self.node_ids[node]
        if home is not None:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            asked["scheduling_strategy"] = NodeAffinitySchedulingStrategy(home, soft=True)
        return asked

    def place(self, shards: Shards) -> Shards:
        """Let the nodes say what is in files that only they can read."""
        from atomcast.data._files import FileShards

        if not isinstance(shards, FileShards) or shards.within_reach():
            return shards
        ray = self.connect()
        describe = ray.remote(_describe)
        asked = []
        for i in range(min(self.nodes, shards.nodes)):
            options = {k: v for k, v in self.options(i).items() if not k.startswith("max_")}
            asked.append(describe.options(**options).remote(shards.only(i)))
        try:
            limit = None if self.deadline is None else self.patience + self.deadline
            return shards.with_infos(ray.get(asked, timeout=limit))
        except ray.exceptions.GetTimeoutError:
            ready, _ = ray.wait(asked, num_returns=len(asked), timeout=0.0)
            late = [str(i) for i, ref in enumerate(asked) if ref not in ready]
            raise TimeoutError(
                f"before the first round: node {', '.join(late)} has not said what is in its file "
                f"within {limit:g} s; can a machine that offers {self.options(int(late[0]))} read "
                "it, and is there one?"
            ) from None
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None

    def take_actors(self) -> list[Any]:
        """Actors that no session uses: those of the last one if they are all there, or new ones."""
        import ray

        from atomcast.cluster.ray.actor import RayNode
        from atomcast.cluster.ray.asynchronous_actor import AsynchronousRayNode
        from atomcast.cluster.slowdown import slowdown_of

        kind = AsynchronousRayNode if self.asynchronous else RayNode
        job = ray.get_runtime_context().get_job_id()
        actors, self._idle = self._idle, []
        if self._job != job:  # the actors were of a Ray that has been shut down
            actors = []
        if actors and not _all_answer(ray, actors):
            self.return_actors(actors, fit=False)
            actors = []
        self._job = job
        return actors or [
            ray.remote(kind)
            .options(**self.options(i))
            .remote(i, self.nodes, self.threads, slowdown_of(i, self.compute, self.faults))
            for i in range(self.nodes)
        ]

    def return_actors(self, actors: list[Any], *, fit: bool) -> None:
        """Take actors back, to be used again if they are fit."""
        import ray

        if fit and not self._idle:
            self._idle = actors
            return
        if not ray.is_initialized():
            return
        for actor in actors:
            with contextlib.suppress(ray.exceptions.RayError):
                ray.kill(actor, no_restart=True)

    def close(self) -> None:
        """Let go of the actors, which otherwise wait for the next fit."""
        actors, self._idle = self._idle, []
        if actors:
            self.return_actors(actors, fit=False)

    def open(self, problem: Problem, shards: Shards) -> RaySession:
        """Start the actors, which load their shards and check them."""
        if self.asynchronous:
            refuse_sums(problem, "an asynchronous run")
        self.connect()
        if self.asynchronous and self.nodes > 1:
            from atomcast.cluster.ray.asynchronous_session import AsynchronousRaySession

            return AsynchronousRaySession(self, problem, shards)
        from atomcast.cluster.ray.ray_session import RaySession

        return RaySession(self, problem, shards)

    def connect(self) -> Any:
        """The module ray, with a cluster behind it."""
        address = self.address or os.environ.get("RAY_ADDRESS") or "local"
        if address == "local" and "ray" not in sys.modules:
            # Without a cluster to be part of, Ray binds to the loopback address alone.
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        try:
            import ray
        except ImportError as error:
            raise ImportError(
                f"RayCluster needs Ray ({error}): install it with pip install 'atomcast[ray]'"
            ) from error
        if ray.is_initialized():
            return ray
        logger.info("starting Ray here" if address == "local" else f"joining Ray at {address}")
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address == "local":
            cores = max(os.cpu_count() or 1, math.ceil(self.nodes * self.cpus))
            ray.init(address="local", num_cpus=cores, include_dashboard=False, **quiet)
            return ray
        _check_answers(address)
        _check_token(address)
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ConnectionError(
                f"the Ray cluster at address={address!r} could not be joined ({error}): does it "
                "run the same version of Ray and Python, and if it asks for a token, are "
                "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH) set here?"
            ) from error
        return ray

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # so that the copies that scikit-learn makes share the actors

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_idle": []}

    def __repr__(self) -> str:
        pace = ", asynchronous=True" if self.asynchronous else ""
        return f"RayCluster(nodes={self.nodes}, address={self.address!r}{pace})"


def _all_answer(ray: Any, actors: Sequence[Any]) -> bool:
    """Whether actors that have been idle are still there."""
    try:
        ray.get([actor.ready.remote() for actor in actors], timeout=ANSWER)
    except ray.exceptions.RayError:
        return False
    return True


def _describe(shards: Any) -> Any:
    """What is in the one file of these shards; runs on the node that has it."""
    return shards.infos[0]


def _check_answers(address: str) -> None:
    """Raise ConnectionError soon if nobody listens at the address: Ray would try for long."""
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(
            f'address must be "host:port", "ray://host:port" or "auto", got {address!r}'
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()
    except OSError as error:
        raise ConnectionError(_no_answer(address, error)) from error


def _check_token(address: str) -> None:
    """Raise ConnectionError if the cluster asks for a token that is not the one set here.

    Ray itself would try twenty times, and write as many lines.
    """
    if address == "auto" or address.startswith("ray://"):
        return  # where the cluster is, Ray finds out itself
    from ray._raylet import GcsClient  # type: ignore[attr-defined]
    from ray.exceptions import AuthenticationError

    with _muted_stderr():
        try:
            GcsClient(address=address)
        except AuthenticationError:
            raise ConnectionError(
                f"the Ray cluster at address={address!r} asks for a token: set RAY_AUTH_MODE=token "
                "and RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH) to the one with which it was started"
            ) from None
        except Exception:
            return  # whatever else is wrong, joining it will tell


@contextlib.contextmanager
def _muted_stderr() -> Iterator[None]:
    """Without what Ray's own code writes past Python."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _no_answer(address: str, error: Exception) -> str:
    return (
        f"no Ray cluster answers at address={address!r} ({error}): start one there with "
        "`ray start --head`, correct the address, or leave it out to use this machine"
    )
