"""What may go wrong in a simulated network: a seeded description, so that runs can be replayed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

from atomcast._checks import check_choice, check_count, check_positive


@dataclass(frozen=True)
class Outage:
    """A node that dies before round `start` and is back for round `end`, with its shard alone.

    Without `end` it never comes back.
    """

    node: int
    start: int
    end: int | None = None

    def __post_init__(self) -> None:
        check_count("node", self.node, "the node that dies", minimum=0)
        _check_rounds(self.start, self.end)


@dataclass(frozen=True)
class Partition:
    """No message passes between these nodes and the rest, from round `start` to before `end`."""

    nodes: tuple[int, ...]
    start: int
    end: int

    def __post_init__(self) -> None:
        if isinstance(self.nodes, str) or not isinstance(self.nodes, Iterable):
            raise ValueError(f"nodes must be a list of those that are cut off, got {self.nodes!r}")
        object.__setattr__(self, "nodes", tuple(self.nodes))
        for node in self.nodes:
            check_count("nodes", node, "the nodes that are cut off", minimum=0)
        _check_rounds(self.start, self.end)


@dataclass(frozen=True)
class Faults:
    """What goes wrong, and how often.

    Parameters
    ----------
    loss : float, default=0.0
        The probability that a message is lost.
    per : {"link", "receiver"}, default="link"
        What a loss hits: one message on one link, so that all beyond it miss it too, or one
        receiver of a broadcast, as in section 6.3 of the paper.
    delay : float, default=0.0
        The mean, in seconds, of an exponentially distributed delay on top of a link's latency.
    duplicates : float, default=0.0
        The probability that a message arrives twice.
    reorder : float, default=0.0
        The probability that a message is held back and overtaken by later ones.
    slow : mapping from node to factor, optional
        How many times slower than the others a node computes. Where time is not simulated
        otherwise, a usual node takes as long as a message takes to cross an edge.
    outages : sequence of Outage, default=()
        Nodes that die, and come back.
    partitions : sequence of Partition, default=()
        Nodes that are cut off from the others for a time.
    seed : int, default=0
        The same seed gives the same faults again.

    Examples
    --------
    >>> from atomcast import Faults, LocalCluster
    >>> cluster = LocalCluster(nodes=10, faults=Faults(loss=0.2, slow={3: 10.0}))
    """

    loss: float = 0.0
    per: Literal["link", "receiver"] = "link"
    delay: float = 0.0
    duplicates: float = 0.0
    reorder: float = 0.0
    slow: Mapping[int, float] = field(default_factory=dict)
    outages: Sequence[Outage] = ()
    partitions: Sequence[Partition] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("loss", "duplicates", "reorder"):
            _check_probability(name, getattr(self, name))
        check_choice("per", self.per, ("link", "receiver"))
        if self.delay != 0:
            check_positive("delay", self.delay, "the mean delay in seconds, 0: none")
        if not isinstance(self.slow, Mapping):
            raise ValueError(
                "slow must be a mapping from nodes to how many times slower they are, such as "
                f"{{3: 10.0}}, got {self.slow!r}"
            )
        self._keep("outages", Outage, "Outage(node=3, start=10, end=20)")
        self._keep("partitions", Partition, "Partition(nodes=(0, 1), start=10, end=20)")
        for node, factor in self.slow.items():
            check_count("slow", node, "the node that is slow", minimum=0)
            check_positive("slow", factor, "how many times slower the node is")
        check_count("seed", self.seed, "the seed of the faults", minimum=0)

    def _keep(self, name: str, kind: type, example: str) -> None:
        """Make a tuple of a sequence of faults, so that equal faults are equal objects."""
        given = getattr(self, name)
        if not isinstance(given, Sequence) or not all(isinstance(part, kind) for part in given):
            raise ValueError(f"{name} must be a sequence such as [{example}], got {given!r}")
        object.__setattr__(self, name, tuple(given))

    def check_nodes(self, nodes: int) -> None:
        """Raise ValueError if a node is named that does not exist."""
        named = set(self.slow) | {outage.node for outage in self.outages}
        named |= {node for partition in self.partitions for node in partition.nodes}
        unknown = sorted(node for node in named if node >= nodes)
        if unknown:
            raise ValueError(
                f"faults name node {unknown[0]}, but there are {nodes} nodes: 0 to {nodes - 1}"
            )


def _check_probability(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < 1:
        raise ValueError(f"{name} must be a probability in [0, 1), got {value!r}")


def _check_rounds(start: int, end: int | None) -> None:
    check_count("start", start, "the first round without", minimum=0)
    if end is not None and check_count("end", end, "the first round with them again") <= start:
        raise ValueError(f"end must be a round after start={start}, got {end!r}")
