"""ADMM with distributed features (Boyd et al. 2011, section 8.3), for squared and logistic loss.

Each node solves a Lasso on its own features, whatever the loss, and sends its prediction A_i x_i to
the coordinator of a star, which answers with one vector of length d. Predictions are sent as sparse
vectors where that is shorter, so that ADMM is charged no more than dFW would be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import process_time
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from atomcast._checks import check_choice, check_count, check_positive
from atomcast.baselines.admm_losses import SharingLogistic, SharingLoss, SharingSquares
from atomcast.baselines.proximal import ProximalGradient
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.loop.result import Result
from atomcast.loop.trace import Row, Trace
from atomcast.messages.atom import Atom
from atomcast.messages.status import Status
from atomcast.network.build import kind_of
from atomcast.network.ledger import COORDINATOR, Ledger
from atomcast.network.wave import NUMBER
from atomcast.network.wire import codec as wire
from atomcast.simulation.local import LocalCluster

Floats = NDArray[np.float64]

LOSSES: dict[str, Callable[[Floats], SharingLoss]] = {
    "squared": SharingSquares,
    "logistic": SharingLogistic,
}


@dataclass(frozen=True, eq=False)
class Features:
    """The columns of all nodes as one sparse matrix, those of a node side by side.

    Parameters
    ----------
    matrix : csc_array of shape (d, n)
    ids : array of shape (n,)
        The global id of each column.
    bounds : array of shape (N + 1,)
        Where the columns of each node begin and end.
    squares : array of shape (n,)
        The squared norm of each column.
    """

    matrix: sparse.csc_array
    ids: NDArray[np.int64]
    bounds: NDArray[np.int64]
    squares: Floats

    @staticmethod
    def of(shards: Shards) -> Features:
        """What the nodes hold."""
        parts = [shards.shard(i) for i in range(shards.nodes)]
        blocks = [sparse.csc_array(part.matrix).astype(np.float64, copy=False) for part in parts]
        matrix = sparse.hstack(blocks, format="csc")
        bounds = np.concatenate(([0], np.cumsum([len(part.ids) for part in parts])))
        squares = np.asarray(matrix.power(2).sum(axis=0)).ravel()
        return Features(matrix, np.concatenate([part.ids for part in parts]), bounds, squares)

    @property
    def nodes(self) -> int:
        """How many nodes hold them."""
        return len(self.bounds) - 1

    @property
    def d(self) -> int:
        """The length of a column."""
        return int(self.matrix.shape[0])

    @property
    def n(self) -> int:
        """How many columns there are."""
        return int(self.matrix.shape[1])

    def solve(
        self,
        targets: Floats,
        weights: Floats,
        predictions: Floats,
        threshold: float,
        tol: float,
        max_passes: int = 10_000,
    ) -> None:
        """Solve the local problems in place, one node after the other."""
        from atomcast.baselines.admm_kernel import solve_locally

        matrix = self.matrix
        solve_locally(
            matrix.indptr,
            matrix.indices,
            matrix.data,
            self.squares,
            self.bounds,
            targets,
            weights,
            predictions,
            threshold,
            tol,
            max_passes,
        )


@dataclass(frozen=True)
class Admm:
    """Minimise l(A x) + lam ||x||_1 by ADMM in its sharing form.

    Parameters
    ----------
    lam : float
        The penalty.
    rho : float, default=1.0
        The penalty parameter of ADMM.
    alpha : float, default=1.0
        Over-relaxation; 1 is none, 1.5 to 1.8 often helps.
    beta : float, optional
        Measure objective and gap on the l1 ball of this radius: an iterate outside of it is
        scaled down first. Default: on the ball that the iterate is just inside of.
    max_rounds : int, default=100
    tol : float, default=1e-6
        Stop when the primal and the dual residual are so small, relatively.
    local_tol : float, default=1e-6
        Accuracy of the local solutions, which are warm-started.
    loss : {"squared", "logistic"}, default="squared"
        l is 1/2 ||y - A x||^2, or the sum of log(1 + exp(-y_i (A x)_i)) for labels -1 and 1.
    local : {"coordinate", "proximal"}, default="coordinate"
        How nodes solve their problems: by compiled coordinate descent, or by a proximal gradient
        method, as in the paper.
    enough : float, optional
        Stop once the objective is no higher, and leave gaps infinite: each of them takes a pass
        over all data.
    """

    lam: float
    rho: float = 1.0
    alpha: float = 1.0
    beta: float | None = None
    max_rounds: int = 100
    tol: float = 1e-6
    local_tol: float = 1e-6
    loss: Literal["squared", "logistic"] = "squared"
    local: Literal["coordinate", "proximal"] = "coordinate"
    enough: float | None = None

    def __post_init__(self) -> None:
        check_choice("loss", self.loss, tuple(LOSSES))
        check_choice("local", self.local, ("coordinate", "proximal"))
        for name in ("lam", "rho", "tol", "local_tol"):
            check_positive(name, getattr(self, name), "a parameter of ADMM")
        if not 0 < self.alpha < 2:
            raise ValueError(f"alpha must be in (0, 2), 1 for no over-relaxation, got {self.alpha}")
        if self.beta is not None:
            check_positive("beta", self.beta, "the radius of the l1 ball")
        check_count("max_rounds", self.max_rounds, "rounds after which to stop")

    def solve(
        self, y: ArrayLike, shards: Shards | Features, cluster: LocalCluster | None = None
    ) -> Result:
        """Run ADMM on the shards of a star.

        Parameters
        ----------
        y : array of shape (d,)
        shards : Shards or Features
            Features are what is made of shards first: make them once for several runs.
        cluster : LocalCluster, optional
            A star with as many nodes as there are shards (the default).

        Returns
        -------
        Result
            `objective` is ||y - A x||^2, or the logistic loss, of x scaled into the ball;
            `seconds` in the trace is the computing time of the local problems, one after the other,
            and of the coordinator's step. "optimal" means that the residuals are small enough.
        """
        features = shards if isinstance(shards, Features) else Features.of(shards)
        nodes = features.nodes
        if cluster is not None and (kind_of(cluster.topology) != "star" or cluster.nodes != nodes):
            raise ValueError(f"ADMM needs a star with a node a shard, LocalCluster({nodes})")
        return Run(self, np.asarray(y, dtype=np.float64), features).result()


class Run:
    """One run of ADMM: the state of all nodes and of the coordinator."""

    def __init__(self, how: Any, y: Floats, features: Features) -> None:
        if y.shape != (features.d,):
            raise ValueError(f"y has shape {y.shape}, but the features have {features.d} rows")
        self.how, self.features = how, features
        self.loss = LOSSES[how.loss](y)
        proximal = how.local == "proximal"
        self.solver = (
            ProximalGradient(features.matrix, features.bounds.tolist()) if proximal else features
        )
        self.nodes = nodes = features.nodes
        self.x = np.zeros(features.n)
        self.predictions = np.zeros((nodes, features.d))  # A_i x_i
        self.said = self.predictions  # what the nodes send in a round
        self.z = np.zeros((nodes, features.d))
        self.u = np.zeros(features.d)
        self.ledger, self.trace = Ledger(nodes), Trace()
        self.seconds = 0.0

    def result(self) -> Result:
        """Rounds until the residuals are small, or there were enough."""
        status: Status = "max_rounds"
        self._observe(0)
        for k in range(1, self.how.max_rounds + 1):
            self.ledger.round = k
            start = process_time()
            primal, dual = self._round()
            self.seconds += process_time() - start
            self._communicate()
            x, image = self._observe(k)
            last = list(self.trace)[-1]
            if max(primal, dual) <= self.how.tol:
                status = "optimal"
                break
            if self.how.enough is not None and last.objective <= self.how.enough:
                status = "stopped"
                break
        used = np.flatnonzero(x)
        order = np.argsort(self.features.ids[used])
        return Result(
            objective=last.objective,
            gap=last.gap,
            relative_gap=last.gap / max(last.objective, 1e-300),
            rounds=k,
            status=status,
            atom_ids=self.features.ids[used][order],
            atom_weights=x[used][order],
            n=self.features.n,
            atom_extras=np.zeros((len(used), 0)),
            image=image,
            trace=self.trace,
            ledger=self.ledger,
        )

    def _round(self) -> tuple[float, float]:
        """Local problems, then the coordinator's step; returns the relative residuals."""
        how, nodes, old = self.how, self.nodes, self.z
        self.solver.solve(old - self.u, self.x, self.predictions, how.lam / how.rho, how.local_tol)
        self.said = self.predictions
        relaxed = how.alpha * self.predictions + (1 - how.alpha) * old
        mean = relaxed.mean(axis=0)
        z_mean = self.loss.mean_update(mean + self.u, nodes, how.rho)
        shift = z_mean - mean  # all that the nodes need to hear
        self.z = relaxed + shift
        self.u = self.u - shift
        norm = np.linalg.norm
        size = max(float(norm(self.predictions)), float(norm(self.z)), 1e-300)
        dual_size = max(math.sqrt(nodes) * float(norm(self.u)), 1e-300)
        return float(norm(self.predictions - self.z)) / size, float(norm(self.z - old)) / dual_size

    def _communicate(self) -> None:
        """Predictions go up, and the vector `shift` comes down to every node."""
        if self.nodes == 1:
            return
        node, d = np.arange(self.nodes), self.features.d
        center = np.full(self.nodes, COORDINATOR)
        sent = [self._message(vector) for vector in self.said]
        values, size = np.array([(atom.count, wire.encoded_size(atom)) for atom in sent]).T
        self.ledger.record("prediction", node, center, values, size)
        whole = np.full(self.nodes, d)
        self.ledger.record("prediction", center, node, whole, NUMBER * whole)

    def _message(self, prediction: Floats) -> Atom:
        """A prediction as it travels: sparse if at most half of it is nonzero."""
        used = np.flatnonzero(prediction)
        if 2 * len(used) > len(prediction):
            return Atom(0, len(prediction), prediction)
        return Atom(0, len(prediction), prediction[used], used)

    def _observe(self, round: int) -> tuple[Floats, Floats]:
        """Enter objective and gap of the iterate on the l1 ball; nobody is charged for that."""
        norm = float(np.abs(self.x).sum())
        beta = norm if self.how.beta is None else self.how.beta
        scale = min(1.0, beta / norm) if norm > 0 else 1.0
        image = scale * self.predictions.sum(axis=0)
        gap = math.inf  # not known
        if self.how.enough is None:
            gradient = self.loss.gradient(image)
            best = float(np.abs(self.features.matrix.T @ gradient).max(initial=0.0))
            gap = L1Ball(beta).gap(float(image @ gradient), best) if beta > 0 else 0.0
        objective = self.loss.value(image)
        used, ledger = int(np.count_nonzero(self.x)), self.ledger
        row = Row(round, self.seconds, objective, gap, used, ledger.values, ledger.bytes)
        self.trace.append(row)
        return scale * self.x, image


def lasso(y: ArrayLike, features: Features, lam: float, tol: float = 1e-8) -> Floats:
    """Minimise 1/2 ||y - A x||^2 + lam ||x||_1 in one place; x of shape (n,) by global id."""
    target = np.ascontiguousarray(y, dtype=np.float64)[None, :]
    together = replace(features, bounds=np.array([0, features.n]))
    x, by_id = np.zeros(features.n), np.zeros(features.n)
    together.solve(target, x, np.zeros_like(target), lam, tol)
    by_id[features.ids] = x
    return by_id
