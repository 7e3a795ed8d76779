"""What a node has told so far, counted from its audit log: the same after every restart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from atomcast.federated.audit import Entry
from atomcast.federated.kinds import ConsentOffer
from atomcast.federated.policy import Policy


@dataclass
class Told:
    """What was told for one problem.

    Parameters
    ----------
    answers : dict of str to dict
        By question, what was answered. To ask again is to get the same answer, and costs nothing.
    weights : set of str
        Digests of the weights that were asked about.
    proposed : set of int
        The ids of features, or groups, whose scores were told.
    sent : set of str
        The features that have left.
    objective : float or None
        At the weights of the last question.
    """

    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    weights: set[str] = field(default_factory=set)
    proposed: set[int] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)
    objective: float | None = None


class Account:
    """What was told in all, by problem and by approval."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.runs: dict[str, Told] = defaultdict(Told)
        #: Problems, features and predictions by approval, and all features that ever left.
        self.problems: dict[str, set[str]] = defaultdict(set)
        self.features: dict[str, set[str]] = defaultdict(set)
        self.predictions: dict[str, set[str]] = defaultdict(set)
        self.ever: set[str] = set()
        #: The ids of features that have left, by the fit and the data that they are of.
        self.known: dict[str, set[int]] = defaultdict(set)
        #: What others have sent, by fit and id: the SHA-256 of its content.
        self.received: dict[tuple[str, int], str] = {}
        #: Digests of weights whose scores were told, by fit and fold; and all folds of the rows.
        self.asked: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.folds: dict[str, list[list[int]]] = defaultdict(list)
        self._rows_of: dict[str, tuple[str, int]] = {}
        #: By offer, which data it was about; and the decisions that were written down.
        self.offered: dict[str, str] = {}
        self.decided: set[tuple[str, str, int]] = set()
        for entry in entries:
            self.enter(entry)

    def left(self, told: Told, offer: ConsentOffer, policy: Policy) -> int:
        """How many more features may leave for a problem."""
        return min(
            min(policy.atoms_per_run, offer.atoms) - len(told.sent),
            offer.atoms_total - len(self.features[offer.id]),
            policy.atoms_total - len(self.ever),
        )

    def enter(self, entry: Entry) -> None:
        """Count what a line of the log tells of."""
        event, run = entry["event"], entry.get("run", "")
        if event == "run":
            self.problems[entry["approval"]].add(run)
            self._rows_of[run] = entry["context"], entry["fold"]
        elif event == "folds":
            self.folds[entry["people"]].append(entry["folds"])
        elif event == "scores":
            told = self.runs[run]
            told.answers[entry["question"]] = entry
            told.weights.add(entry["weights"])
            told.proposed.update(entry["ids"])
            told.objective = entry["objective"]
            if entry["best"] is not None:
                self.asked[self._rows_of[run]].add(entry["weights"])
        elif event == "atom":
            features = {f"{entry['alias']}/{name}" for name in entry["names"]}
            self.runs[run].sent |= features
            self.known[entry["context"]].add(entry["id"])
            self.features[entry["approval"]] |= features
            self.ever |= features
        elif event == "handed":
            self.received[entry["context"], entry["id"]] = entry["sha256"]
        elif event == "offer":
            self.offered[entry["id"]] = entry["data"]
        elif event in ("approved", "withdrawn"):
            self.decided.add((event, entry["id"], entry["at"]))
        elif event == "prediction":
            self.predictions[entry["approval"]].add(entry["question"])
