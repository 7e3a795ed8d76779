"""Making sure that all nodes start from the same, and are still at the same point."""

from __future__ import annotations

from collections.abc import Sequence

from xxhash import xxh3_64_intdigest

from atomcast.errors import ClusterError
from atomcast.loop.replica import Replica
from atomcast.storage.facts import Facts


class DriftError(ClusterError):
    """Nodes that should have the same state do not."""


def state_digest(replica: Replica) -> int:
    """A hash of everything that must be equal, bit for bit, on all nodes; it fits an int64."""
    active = replica.active
    ids, image = active.ids, active.image
    digest = xxh3_64_intdigest(active.weight_bytes(), (replica.round << 32) + len(ids))
    digest ^= ids[-1] if ids else 0
    if image is not None:
        digest = xxh3_64_intdigest(image, digest)  # type: ignore[arg-type]  # it has a buffer
    return digest >> 1


def check_digests(digests: Sequence[int], round: int) -> None:
    """Raise the same DriftError everywhere unless all nodes have the same state."""
    if len(set(digests)) == 1:
        return
    usual = max(set(digests), key=lambda digest: (digests.count(digest), digest == digests[0]))
    odd = [str(i) for i, digest in enumerate(digests) if digest != usual]
    raise DriftError(
        f"round {round}: node {', '.join(odd)} has another state than the other nodes, although "
        "all were told the same. Do all of them use the same versions of atomcast, numpy and "
        "scipy, the same BLAS library, as many threads (set OMP_NUM_THREADS=1 everywhere), the "
        "same kind of processor and the same target y?"
    )


def check_same_facts(each: Sequence[Facts]) -> None:
    """Raise the same ValueError everywhere unless all nodes were told the same."""
    for i, told in enumerate(each):
        for name in {**each[0], **told}:
            mine, first = told.get(name, "missing"), each[0].get(name, "missing")
            if mine != first:
                raise ValueError(
                    f"node {i} was told another {name} than node 0: {mine} against {first}. "
                    "Give the same parameters and the same target to every node"
                )
