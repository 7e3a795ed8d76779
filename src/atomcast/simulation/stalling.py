"""For how long the root insists on hearing nodes, and what it says if they stay silent."""

from __future__ import annotations

from collections.abc import Sequence

from atomcast.errors import StallError
from atomcast.network.faults import Faults, Outage, Partition

#: Where the root needs nodes, it waits for so many times the length of a usual round, for more
#: if messages are lost, and for more if it is known when faults end, but never for more than that.
DEADLINE, LONGEST_DEADLINE = 50, 5_000


def turns(faults: Faults, missing: Sequence[int], clock: int) -> int:
    """How many times to wait for nodes that are missing at this time of the faults' clock."""
    usual = int(min(DEADLINE / (1.0 - faults.loss) ** 2, LONGEST_DEADLINE))
    if any(outage.end is None for outage in _outages_of(faults, missing, clock)):
        return usual
    # Also faults that only begin while the root waits; others end too late to wait for.
    ends = [fault.end for fault in _passing(faults) if fault.end is not None]
    left = [end - clock for end in ends if 0 < end - clock <= LONGEST_DEADLINE]
    return usual + max(left, default=0)


def stall(
    faults: Faults, missing: Sequence[int], clock: int, round: int, waited: int
) -> StallError:
    """The error that names the nodes, the round, and what seems to be the matter."""
    nodes = ", ".join(map(str, missing))
    return StallError(
        f"round {round}: node {nodes} was not heard within {waited} times the length of a round, "
        f"and without it nothing can be certified. {_cause(faults, missing, clock)}"
    )


def _cause(faults: Faults, missing: Sequence[int], clock: int) -> str:
    for outage in _outages_of(faults, missing, clock):
        if outage.end is None:
            return f"{outage!r} lets node {outage.node} never come back: give it an end"
    last = _last_end(faults, clock)
    if last > clock:
        return (
            f"It may be because of an outage or a partition that ends in round {last}, while it "
            f"is round {clock} for the faults, which count waiting too: let it end earlier"
        )
    slow = [node for node in missing if faults.slow.get(node, 1.0) > 1.0]
    if slow:
        return f"Node {slow[0]} is slow={faults.slow[slow[0]]:g} times slower: make it less slow"
    return "Too many messages are lost or late: use less loss, delay or reorder, or fewer nodes"


def _outages_of(faults: Faults, nodes: Sequence[int], clock: int) -> list[Outage]:
    """Those outages that nodes are in."""
    return [
        outage
        for outage in faults.outages
        if outage.node in nodes
        and outage.start <= clock
        and (outage.end is None or clock < outage.end)
    ]


def _last_end(faults: Faults, clock: int) -> int:
    """When all outages and partitions that have begun and end at all are over."""
    begun = [fault for fault in _passing(faults) if fault.start <= clock]
    return max((fault.end for fault in begun if fault.end is not None), default=clock)


def _passing(faults: Faults) -> list[Outage | Partition]:
    """What begins in some round, and may end in another."""
    return [*faults.outages, *faults.partitions]
