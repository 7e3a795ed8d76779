"""What a coordinator asks the humans at the nodes to approve."""

from __future__ import annotations

import time
from dataclasses import dataclass

from atomcast._checks import check_count, check_positive
from atomcast.federated.consent import pinned
from atomcast.federated.kinds import Begin, ConsentOffer

#: Approvals last for whole days.
DAY = 86400
#: What is counted, at least one of each.
COUNTS = ("runs", "rounds", "proposals", "atoms", "atoms_total")
OTHERS = ("purpose", "predict", "predictions")


@dataclass(frozen=True)
class Terms:
    """How much a fit may ask of each node; nodes may have tighter limits of their own.

    Parameters
    ----------
    purpose : str
        What the people who approve are told.
    radius : tuple of two floats, optional
        From which to which radius problems may be solved; by default that of the fit alone.
    runs : int
        How many problems: the radii of a path, on each fold, or fits with other radii.
    rounds, proposals : int
        How many questions for each problem, and how many scores in an answer.
    atoms, atoms_total : int
        How many features may leave a node for one problem, and in all.
    predict : str
        The alias of new data for which predictions may be asked for.
    predictions : int
        How many times.
    days : int
        After how many days an approval expires.
    """

    purpose: str = ""
    radius: tuple[float, float] | None = None
    runs: int = 1
    rounds: int = 200
    proposals: int = 100
    atoms: int = 100
    atoms_total: int = 1000
    predict: str = ""
    predictions: int = 0
    days: int = 30

    def __post_init__(self) -> None:
        for name in (*COUNTS, "days"):
            check_count(name, getattr(self, name), "in the terms of a federated fit")
        check_count("predictions", self.predictions, "times to predict", minimum=0)
        if self.radius is not None:
            low, high = self.radius
            check_positive("radius", low, "the smallest radius to be approved")
            if not low <= check_positive("radius", high, "the largest radius to be approved"):
                raise ValueError(f"radius must be a range (from, to), got {self.radius!r}")

    def check_radius(self, radius: float) -> None:
        """Raise ValueError if the members were not asked about this radius."""
        if self.radius is not None and not self.radius[0] <= radius <= self.radius[1]:
            raise ValueError(
                f"the radius {radius:g} is not within radius={self.radius!r} of the terms: ask for "
                "more, or give the radii to try (betas=...)"
            )

    def offer(self, begin: Begin, coordinator: str, order: str) -> ConsentOffer:
        """What is put before the members for a problem."""
        low, high = self.radius or (begin.radius, begin.radius)
        self.check_radius(begin.radius)
        if len(begin.folds) and self.radius is None:
            raise ValueError(
                "cross-validation is many problems: say which in the terms of the cluster, as "
                '{"radius": (from, to), "runs": radii x (folds + 1)}'
            )
        return ConsentOffer(
            **pinned(begin),
            **{
                name: getattr(self, name) for name in (*COUNTS, "purpose", "predict", "predictions")
            },
            coordinator=coordinator,
            order=order,
            radius_from=float(low),
            radius_to=float(high),
            expires=(int(time.time()) // DAY + 1 + self.days) * DAY,
        )
