"""What outlives a restart of a node: its audit log, what is counted from it, and decisions."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from atomcast.federated.account import Account
from atomcast.federated.audit import AuditLog, Entry
from atomcast.federated.consent import Approval, Consents, RefusedError
from atomcast.federated.folds import fewest_together
from atomcast.federated.kinds import Begin, ConsentOffer, Ids


class Records:
    """The state of a node on the disk.

    Parameters
    ----------
    state : Path
        The folder.
    """

    def __init__(self, state: Path) -> None:
        self.log = AuditLog(state / "audit.jsonl")
        self.account = Account(self.log.entries)
        self._consents = Consents(state)
        self._decided: tuple[int, ...] = ()
        self.note_decisions()

    def note(self, event: str, **what: Any) -> None:
        """Write a line to the audit log, and count what it tells of."""
        self.account.enter(self.log.write(event, **what))

    def note_decisions(self) -> None:
        """Write down what people have decided since; they do so in another process."""
        changed = self._consents.changed()
        if changed == self._decided:
            return
        withdrawn = self._consents.withdrawn()
        decisions = [("approved", one) for one in (*withdrawn, *self.approvals())]
        for event, one in (*decisions, *(("withdrawn", one) for one in withdrawn)):
            if (event, one.offer.id, one.at) not in self.account.decided:
                self.note(event, id=one.offer.id, by=one.by, at=one.at)
        self._decided = changed

    def approvals(self) -> list[Approval]:
        """All approvals that hold."""
        return self._consents.approvals()

    def ruling(self, offer: ConsentOffer, data: str) -> bool:
        """Whether an offer about these data is approved; if not, it is kept for people to see."""
        if any(approval.covers(offer) for approval in self.approvals()):
            return True
        self._consents.ask(offer)
        if self.account.offered.get(offer.id) != data:
            self.note("offer", id=offer.id, terms=dataclasses.asdict(offer), data=data)
        return False

    def approval(self, begin: Begin, coordinator: str) -> Approval:
        """The approval of a problem; RefusedError if there is none."""
        for approval in self.approvals():
            if approval.offer.coordinator == coordinator and approval.fits(begin):
                return approval
        raise RefusedError(
            "nobody here has approved this problem: target, objective, radius, members and data "
            "must be those of an approval that has not expired"
        )

    def check_valid(self, approval: Approval) -> None:
        """Raise RefusedError if an approval no longer holds."""
        if approval not in self.approvals() or not approval.valid:
            raise RefusedError(f"approval {approval.offer.id} has expired, or was withdrawn")

    def check_unchanged(self, offer: ConsentOffer, data: str) -> None:
        """Raise RefusedError if the data are no longer those that an offer was about."""
        if self.account.offered.get(offer.id) != data:
            raise RefusedError(
                "the rows or features here are no longer those of the approval: there, withdraw it "
                f"(`atomcast node approve {offer.id} --withdraw`), and approve the next offer"
            )

    def take_folds(self, folds: Ids, people: str, least: int) -> None:
        """Note the folds of a cross-validation, unless they and earlier ones tell few rows apart.

        Whoever approves other folds sees a hash of them, and not by which rows they differ.
        """
        earlier = self.account.folds[people]
        if not len(folds) or folds.tolist() in earlier:
            return
        if fewest_together([*map(np.array, earlier), folds]) < least:
            raise RefusedError(
                "these folds and those of an earlier cross-validation differ by a few rows, which "
                "scores over both would show: use the earlier folds again"
            )
        self.note("folds", people=people, folds=folds.tolist())

    def begun(self, approval: str, run: str | None = None) -> Entry:
        """What the log says of a run of an approval; by default of the first."""
        return next(
            entry
            for entry in self.log.entries
            if entry["event"] == "run"
            and entry["approval"] == approval
            and run in (None, entry["run"])
        )
