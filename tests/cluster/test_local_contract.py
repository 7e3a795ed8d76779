"""Simulated nodes that score in one pass keep the contract of nodes that are on their own."""

from __future__ import annotations

import pytest

from atomcast import LocalCluster
from cluster.contract import CASES


@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize("name", CASES)
def test_local(name, nodes, contract_folder):
    CASES[name](LocalCluster, nodes)
