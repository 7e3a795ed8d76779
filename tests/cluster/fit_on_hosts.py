"""A small fit, on the ranks of an MPI job or on a Ray cluster of several hosts; prints JSON."""

import json
import socket
import sys

import numpy as np

from atomcast import Lasso, MPICluster, RayCluster, Shards

ROWS, FEATURES, BETA = 400, 60, 9.0


def problem():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((ROWS, FEATURES))
    return X, 4.0 * X[:, 0] - 3.0 * X[:, 25] + 3.0 * X[:, 59] + 0.1 * rng.standard_normal(ROWS)


def on_ranks():
    X, y = problem()
    cluster = MPICluster()
    own = np.array_split(np.arange(FEATURES), cluster.nodes)[cluster.rank]
    model = Lasso(BETA, cluster=cluster).fit(Shards.mine(X[:, own]), y)
    return model, cluster.comm.gather(socket.gethostname()), cluster.rank == 0


def on_actors():
    import ray

    X, y = problem()
    places = [{"site_0": 1}, {"site_1": 1}]
    cluster = RayCluster(nodes=2, resources=places)
    model = Lasso(BETA, cluster=cluster).fit(Shards.split(X, 2, by="contiguous"), y)
    name = ray.remote(lambda: socket.gethostname())
    hosts = [name.options(num_cpus=0, resources=place).remote() for place in places]
    return model, ray.get(hosts), True


if __name__ == "__main__":
    model, hosts, speaks = {"mpi": on_ranks, "ray": on_actors}[sys.argv[1]]()
    if speaks:
        result = model.result_
        print(json.dumps([hosts, result.status, model.coef_.tolist(), result.ledger.values]))
