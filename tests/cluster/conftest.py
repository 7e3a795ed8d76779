"""What tests that start processes need around them: limits, and leave to run in a container."""

from __future__ import annotations

import pytest

#: As root, and with more ranks than cores: for tests only, a library must not decide that.
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    # Waiting ranks leave the cores to those that work.
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
    # Ranks of one machine talk through its memory.
    "OMPI_MCA_btl": "self,sm",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@pytest.fixture(scope="session")
def contract_folder(tmp_path_factory):
    """Where the cases of the contract write their files."""
    folder = tmp_path_factory.mktemp("contract")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATOMCAST_CONTRACT_FOLDER", str(folder))
        yield folder


@pytest.fixture
def mpi_environment(monkeypatch):
    """Let this test start MPI ranks in whatever place it runs."""
    for name, value in MPI_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


#: Ray on the loopback address alone.
RAY_ENVIRONMENT = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # binds to the loopback address alone
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # or actors wait for a minute while others use the machine
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@pytest.fixture(scope="module")
def ray():
    """Ray on this machine, reachable from nowhere else, for all tests of this module."""
    from atomcast import RayCluster

    with pytest.MonkeyPatch.context() as patch:
        for name, value in RAY_ENVIRONMENT.items():
            patch.setenv(name, value)
        module = RayCluster(nodes=8).connect()
        yield module
        module.shutdown()
