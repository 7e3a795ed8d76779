"""Ray nodes that do not answer in time: which ones they are, and what to say about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ray

from atomcast.errors import ClusterError, StallError


class NodeError(ClusterError):
    """A node failed, or was lost and did not come back."""


def late(refs: Sequence[Any], seconds: float | None) -> list[int]:
    """Which of these answers, by their place, are not there after so many seconds."""
    _, missing = ray.wait(list(refs), num_returns=len(refs), timeout=seconds, fetch_local=False)
    return [k for k, ref in enumerate(refs) if ref in missing]


def stalled(
    where: str, nodes: Sequence[int], asked: Sequence[Any], deadline: float | None
) -> StallError:
    """The error for nodes that have not answered what they were asked within the deadline."""
    names = ", ".join(str(nodes[k]) for k in late(asked, 0.0))
    return StallError(
        f"{where}: node {names} has not answered for {deadline:g} s. If a node may take that long, "
        "raise RayCluster(deadline=...); if there is a checkpoint, the run can be resumed from it"
    )
