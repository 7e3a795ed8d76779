"""MPI ranks and Ray machines on several hosts, each with a network of its own."""

import json
import os
import shlex
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from atomcast import Lasso
from cluster.conftest import MPI_ENVIRONMENT
from cluster.fit_on_hosts import BETA, problem
from cluster.hosts import NETWORK, Hosts, why_not
from patience import PATIENCE, wait_until

REASON = why_not()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("processes"),
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
]

BIN = Path(sys.executable).parent
FIT = shlex.join([sys.executable, str(Path(__file__).with_name("fit_on_hosts.py"))])


def checked(done, hosts):
    """What the fit says, which must be what it says on one host."""
    assert done.returncode == 0, done.stdout + done.stderr
    where, status, coef, values = json.loads(done.stdout.splitlines()[-1])
    assert where == hosts
    assert status == "optimal"
    expected = Lasso(BETA).fit(*problem())
    np.testing.assert_allclose(coef, expected.coef_, atol=1e-6)
    assert values > 0


@pytest.mark.mpi
def test_ranks_on_three_hosts(tmp_path):
    # Nothing is said of the transport, which Open MPI must find, nor of more ranks than slots.
    elsewhere = ("OMPI_MCA_btl", "PRTE_MCA_rmaps_default_mapping_policy")
    settings = {k: v for k, v in MPI_ENVIRONMENT.items() if k not in elsewhere}
    with Hosts(3, tmp_path) as hosts:
        words = [f"{BIN}/mpirun", "-n", "3", "--prtemca", "plm_ssh_agent", str(hosts.ssh)]
        words += ["--mca", "btl_tcp_if_include", f"{NETWORK}.0/24"]
        words += ["--host", ",".join(f"{address}:1" for address in hosts.addresses)]
        command = f"{shlex.join(words)} {FIT} mpi"
        done = hosts.run(0, command, timeout=PATIENCE, env={**os.environ, **settings})
        checked(done, ["host-1", "host-2", "host-3"])


@pytest.mark.ray
def test_ray_on_two_hosts(tmp_path):
    def start(host, *words):
        site = json.dumps({f"site_{host}": 2})
        words = [f"{BIN}/ray", "start", "--block", *words, "--resources", site, "--num-cpus", "1"]
        words += ["--node-ip-address", hosts.addresses[host], "--object-store-memory", "80000000"]
        log = tmp_path / f"{host}.log"
        hosts.start(host, shlex.join(words), log, env=environment)
        wait_until(lambda: "Ray runtime started" in log.read_text(), f"host {host} starts Ray")

    # Names of sockets are short, hence /tmp.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, Hosts(2, tmp_path) as hosts:
        address = f"{hosts.addresses[0]}:6379"
        environment = {**os.environ, "RAY_ADDRESS": address, "OMP_NUM_THREADS": "1"}
        environment |= {"RAY_USAGE_STATS_ENABLED": "0"}
        environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef" * 2}
        first = ["--head", "--port", "6379", "--include-dashboard", "false", "--temp-dir", folder]
        start(0, *first)
        start(1, "--address", address)
        done = hosts.run(0, f"{FIT} ray", timeout=PATIENCE, env=environment)
        checked(done, ["host-1", "host-2"])
