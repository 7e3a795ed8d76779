"""Three nodes, each a process in a network namespace of its own; run inside `unshare --net`.

unshare --net --mount python namespaces.py FOLDER
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from federation import NAMES, Parties, make_data

HERE = "10.77.0.100"


def sh(command):
    subprocess.run(command.split(), check=True)


def networks():
    """A bridge, and a namespace for each party that is connected to it."""
    sh("mount -t tmpfs none /run")
    sh("ip link add bridge type bridge")
    sh(f"ip addr add {HERE}/24 dev bridge")
    sh("ip link set bridge up")
    sh("ip link set lo up")
    for k, name in enumerate(NAMES, 1):
        sh(f"ip netns add {name}")
        sh(f"ip link add to-{name} type veth peer name eth0 netns {name}")
        sh(f"ip link set to-{name} master bridge up")
        sh(f"ip -n {name} addr add 10.77.0.{k}/24 dev eth0")
        sh(f"ip -n {name} link set eth0 up")


def main(folder):
    from atomcast import FederatedCluster, Lasso
    from atomcast.federated.keys import make_ca, make_keys, sign_request

    networks()
    keys = folder / "keys"
    make_ca(keys)
    for name in ("coordinator", *NAMES):
        sign_request(keys, make_keys(name, keys, [HERE]))
    parts, y = make_data()
    nodes = []
    for name, part in zip(NAMES, parts, strict=True):
        home = folder / name
        home.mkdir()
        np.save(home / "data.npy", part)
        (home / "node.toml").write_text(
            f'name = "{name}"\ncoordinator = "coordinator"\naddress = "{HERE}:7443"\n'
            f'certificates = "{keys}"\n[data.cohort]\npath = "data.npy"\n'
        )
        command = ["ip", "netns", "exec", name, sys.executable, "-m", "atomcast.cli", "node", "run"]
        nodes.append(subprocess.Popen([*command, "--config", str(home / "node.toml")]))
    try:
        with FederatedCluster(f"{HERE}:7443", NAMES, keys, patience=120.0) as cluster:
            shards = cluster.shards("cohort")
            parties = Parties(folder / "unused", parts)
            parties.configs = {n: State(folder / n / "state") for n in NAMES}
            parties.approve_soon()
            model = Lasso(5.0, cluster=cluster).fit(shards, y)
            lines = [cluster.calls().line(node) for node in range(cluster.nodes)]
            peers = ", ".join(line.address.split(":")[1] for line in lines)
    finally:
        for node in nodes:
            node.terminate()
            node.wait()
    print(f"{model.result_.status} from {peers}")


class State:
    """Where a node keeps its state."""

    def __init__(self, state):
        self.state = state


if __name__ == "__main__":
    main(Path(sys.argv[1]))
