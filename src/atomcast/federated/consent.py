"""What humans have agreed to: offers that wait for a decision, and approvals, a file each.

The target is pinned by its hash. Scores are inner products with the residual: whoever may choose
the target reads rows of the data from scores alone, without a single feature leaving.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from atomcast._replacing import replacing
from atomcast.errors import ClusterError
from atomcast.federated.folds import summary
from atomcast.federated.kinds import Begin, ConsentOffer

#: Fields of an offer that must be those approved, and those that may be smaller.
PINNED = (
    *("coordinator", "alias", "members", "target", "order", "objective", "domain", "groups"),
    *("folds", "fit_intercept", "rows", "predict"),
)
#: How many offers may wait: a coordinator cannot fill the disk with them.
MOST_OFFERS = 100
#: For how many seconds an offer may be good: five years.
LONGEST = 5 * 366 * 86_400
LIMITS = ("radius_to", "runs", "rounds", "proposals", "atoms", "atoms_total", "predictions")


class RefusedError(ClusterError):
    """A node has refused what it was asked; the message says which, and why."""


def target_digest(target: ArrayLike) -> str:
    """The SHA-256 of a target: of its numbers as little-endian float64, in order."""
    return hashlib.sha256(np.ascontiguousarray(target, dtype="<f8").tobytes()).hexdigest()


def pinned(begin: Begin) -> dict[str, Any]:
    """What an offer says of a problem, and an approval holds it to."""
    return {
        "alias": begin.alias,
        "members": begin.members,
        "objective": begin.objective,
        "domain": begin.domain,
        "groups": summary(begin.groups, "groups", begin.group_weights),
        "folds": summary(begin.folds, "folds"),
        "fit_intercept": begin.fit_intercept,
        "target": target_digest(begin.target),
        "rows": len(begin.target),
    }


@dataclasses.dataclass(frozen=True)
class Approval:
    """An offer that somebody has approved, and when (in nanoseconds since 1970)."""

    offer: ConsentOffer
    by: str
    at: int

    def covers(self, offer: ConsentOffer) -> bool:
        """Whether everything that is asked for was approved, and still is."""
        mine = self.offer
        same = all(getattr(mine, name) == getattr(offer, name) for name in PINNED)
        within = all(getattr(offer, name) <= getattr(mine, name) for name in LIMITS)
        return same and within and offer.radius_from >= mine.radius_from and self.valid

    @property
    def valid(self) -> bool:
        """Whether it has not expired."""
        return time.time() < self.offer.expires

    def fits(self, begin: Begin) -> bool:
        """Whether a problem is the one that was approved."""
        mine = self.offer
        asked = pinned(begin)
        return (
            {name: getattr(mine, name) for name in asked} == asked
            and mine.radius_from <= begin.radius <= mine.radius_to
            and self.valid
        )


class Consents:
    """The offers and approvals in the state of a node."""

    def __init__(self, state: Path) -> None:
        self._offers, self._approvals = state / "offers", state / "approvals"
        self._withdrawn = state / "withdrawn"

    def changed(self) -> tuple[int, ...]:
        """When decisions were made last, in nanoseconds; cheaper than to read them."""
        folders = (self._approvals, self._withdrawn)
        return tuple(one.stat().st_mtime_ns if one.exists() else 0 for one in folders)

    def ask(self, offer: ConsentOffer) -> None:
        """Keep an offer for a human to look at."""
        path = self._offers / f"{offer.id}.json"
        if not time.time() < offer.expires <= time.time() + LONGEST:
            raise RefusedError("an offer must expire, within five years, and not have expired")
        if path.exists():
            return
        if len(self.offers()) >= MOST_OFFERS:
            raise RefusedError(f"{MOST_OFFERS} offers wait for approval here: no more are kept")
        _write(path, dataclasses.asdict(offer))

    def offers(self) -> list[ConsentOffer]:
        """Offers that nobody has approved yet, and that have not expired."""
        approved = {approval.offer.id for approval in self.approvals()}
        found = [ConsentOffer(**table) for table in _tables(self._offers)]
        return [o for o in found if o.id not in approved and time.time() < o.expires]

    def approve(self, id: str, by: str) -> Approval:
        """Approve the offer with this id, in the name of somebody."""
        for offer in self.offers():
            if offer.id == id:
                approval = Approval(offer, by, time.time_ns())
                _write(self._approvals / f"{id}.json", dataclasses.asdict(approval))
                return approval
        waiting = ", ".join(offer.id for offer in self.offers()) or "none"
        raise ValueError(f"no offer {id!r} waits for approval; those that do: {waiting}")

    def withdraw(self, id: str) -> None:
        """Take an approval back; it is kept among those withdrawn, for the audit log."""
        found = [approval for approval in self.approvals() if approval.offer.id == id]
        if not found:
            raise ValueError(f"there is no approval {id!r} to withdraw")
        self._withdrawn.mkdir(exist_ok=True)
        (self._approvals / f"{id}.json").rename(self._withdrawn / f"{id}-{found[0].at}.json")
        (self._offers / f"{id}.json").unlink(missing_ok=True)

    def approvals(self) -> list[Approval]:
        """All approvals that hold."""
        return _approvals(self._approvals)

    def withdrawn(self) -> list[Approval]:
        """Those that were taken back."""
        return _approvals(self._withdrawn)


def _approvals(folder: Path) -> list[Approval]:
    return [
        Approval(ConsentOffer(**table["offer"]), table["by"], table["at"])
        for table in _tables(folder)
    ]


def _tables(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.json")):
        yield json.loads(path.read_text())


def _write(path: Path, table: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, encoding="utf-8") as file:
        json.dump(table, file, indent=1, sort_keys=True)
