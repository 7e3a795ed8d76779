"""Parties of a federated fit for tests: keys, nodes in threads, and people who approve."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import shutil
import signal
import threading
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

NAMES = ("north", "south", "east")


@cache
def trial_keys():
    """A folder with an authority and the keys of all parties, made once for all tests."""
    from atomcast.federated.keys import make_ca, make_keys, sign_request

    folder = Path(mkdtemp(prefix="atomcast-keys-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make_ca(folder)
    for name in ("coordinator", *NAMES, "stranger"):
        sign_request(folder, make_keys(name, folder, ["127.0.0.1", "localhost"]))
    return folder


def make_data(seed=0, rows=60, features=(8, 5, 7)):
    """Features of each party, and a target that needs some of all of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, sum(features)))
    first = np.cumsum((0, *features[:-1]))
    y = X[:, first] @ np.array([3.0, -2.0, 1.5]) + 0.5 * rng.standard_normal(rows)
    return np.split(X, np.cumsum(features)[:-1], axis=1), y


LOADING = threading.Lock()


def one_at_a_time(node_type):
    """The same kind of node, of which only one reads its file at a time.

    NumPy parses headers as Python does, and Python 3.11 cannot parse in two threads at once.
    """

    class Node(node_type):
        def _holding(self, alias):
            with LOADING:
                return super()._holding(alias)

    return Node


def run_node(config):
    """A node in a process of its own, until it is killed."""
    from atomcast.federated.attending import attend
    from atomcast.federated.identity import Credentials
    from atomcast.federated.party import Node

    attend(Node(config, Credentials(config.certificates, config.name)), threading.Event())


def coordinate(address, names, keys, y, how, file):
    """A coordinator that is killed in its fifth round; it writes checkpoints."""
    from atomcast import Checkpoint, FederatedCluster, Lasso, Solver

    def die(state):
        if state.round == 4:
            os.kill(os.getpid(), signal.SIGKILL)

    cluster = FederatedCluster(address, names, keys, deadline=60.0, patience=60.0)
    solver = Solver(**how, callbacks=[Checkpoint(file, rounds=1), die])
    Lasso(8.0, cluster=cluster, solver=solver).fit(cluster.shards("cohort"), y)


def processes():
    """How processes are started quickly: as forks of one that has imported everything, once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["atomcast.federated.attending", "atomcast.data.readers"])
    return context


class Parties:
    """Nodes that run in threads of this process, each with its own folder and identity."""

    def __init__(self, folder, parts, names=NAMES, keys=None, **policy):
        from atomcast import FederatedCluster
        from atomcast.federated.policy import DataSource, NodeConfig, Policy

        self.folder, self.names, self.keys = folder, names, keys or trial_keys()
        self.make_cluster = lambda address="127.0.0.1:0", **how: FederatedCluster(
            address, names, self.keys, **{"deadline": 60.0, "patience": 60.0, **how}
        )
        self.configs, self._nodes, self._approving = {}, {}, None
        for name, part in zip(names, parts, strict=True):
            home = folder / name
            home.mkdir(parents=True)
            np.save(home / "data.npy", part)
            self.configs[name] = NodeConfig(
                name=name,
                coordinator="coordinator",
                address="",
                certificates=self.keys,
                state=home / "state",
                data={"cohort": DataSource(home / "data.npy")},
                policy=Policy(**policy),
            )

    def start(self, name, port, node_type=None):
        """Start a node; returns it."""
        from atomcast.federated.attending import attend
        from atomcast.federated.identity import Credentials
        from atomcast.federated.party import Node

        config = replace(self.configs[name], address=f"127.0.0.1:{port}")
        node = one_at_a_time(node_type or Node)(config, Credentials(config.certificates, name))
        stop = threading.Event()
        thread = threading.Thread(target=attend, args=(node, stop), daemon=True)
        thread.start()
        self._nodes[name] = node, stop, thread
        return node

    def start_process(self, name, port):
        """Start a node as a process, which is returned."""
        config = replace(self.configs[name], address=f"127.0.0.1:{port}")
        process = processes().Process(target=run_node, args=(config,), daemon=True)
        process.start()
        return process

    def stop(self, name):
        """Stop a node, which forgets all but its state on the disk."""
        node, stop, thread = self._nodes.pop(name)
        stop.set()
        thread.join(30)
        node.close()

    def open(self, approve=True, node_types=(), **how):
        """A cluster whose nodes all run."""
        self.cluster = self.make_cluster(**how)
        port = self.cluster.listen()
        for name in self.names:
            self.start(name, port, dict(node_types).get(name))
        if approve:
            self.approve_soon()
        return self.cluster

    def approve_soon(self):
        """Approve whatever is offered from now on."""
        self._approving = threading.Event()
        threading.Thread(target=self._approve_all, daemon=True).start()

    def _approve_all(self):
        while not self._approving.wait(0.02):
            self.approve()

    def approve(self):
        """Approve whatever was offered; returns the offers."""
        from atomcast.federated.consent import Consents

        offers = []
        for config in self.configs.values():
            consents = Consents(config.state)
            for offer in consents.offers():
                with suppress(ValueError):
                    consents.approve(offer.id, by="the privacy officer")
                offers.append(offer)
        return offers

    def log(self, name):
        """What the audit log of a node says."""
        from atomcast.federated.audit import read_log

        return list(read_log(self.configs[name].state / "audit.jsonl"))

    def close(self):
        if self._approving is not None:
            self._approving.set()
        for name in list(self._nodes):
            self.stop(name)
        self.cluster.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def offline_node(folder, part, y, approve=True, node_type=None, second=False, **terms):
    """A node without any transport, which has begun an approved fit, and the other party's keys.

    It is the first of two members, or the second.
    """
    from atomcast.federated.consent import Consents
    from atomcast.federated.identity import Credentials
    from atomcast.federated.kinds import Begin
    from atomcast.federated.party import Node
    from atomcast.federated.terms import Terms

    posed = terms.pop("posed", {})
    policy, keys = terms.pop("policy", {}), terms.pop("keys", trial_keys())
    parties = Parties(folder, [part, part], NAMES[:2], keys, **policy)
    config = parties.configs["north"]
    other = Credentials(keys, "south")
    node = (node_type or Node)(config, Credentials(keys, "north"))
    peers = (node.credentials.peer, other.peer)
    members = " ".join(f"{p.name}={p.fingerprint}" for p in (peers[::-1] if second else peers))
    n, none = part.shape[1], np.zeros(0, dtype=np.int64)
    begin = Begin(
        alias="cohort",
        members=members,
        objective="squared error",
        domain="l1 ball",
        fit_intercept=True,
        radius=2.0,
        target=y,
        starts=np.array([0, n, 2 * n]),
        groups=none,
        group_weights=np.zeros(0),
        folds=none,
        fold=-1,
    )
    begin = replace(begin, **posed)
    offer = Terms(**terms).offer(begin, "coordinator", "")
    node.answer(offer)
    if approve:
        Consents(config.state).approve(offer.id, "the privacy officer")
    node.answer(claim_of(other))
    return node, begin, other


def claim_of(credentials):
    """How the coordinator introduces somebody."""
    from atomcast.federated.attending import introduction

    return introduction(credentials.name, credentials.hello())


def reopened(node):
    """The node after a restart: it knows what is on the disk."""
    from atomcast.federated.party import Node

    node.close()
    return Node(node.config, node.credentials)


def begin_again(node, begin, other):
    """What the coordinator tells a node that has come back."""
    node.answer(claim_of(other))
    return node.answer(begin)


def ask(weights=(), ids=(), count=10, known_too=True):
    """A question about some weights."""
    from atomcast.federated.kinds import ScoreRequest

    ids, weights = np.array(ids, dtype=np.int64), np.array(weights, dtype=np.float64)
    return ScoreRequest(ids, weights, count, -np.inf, known_too, False)
