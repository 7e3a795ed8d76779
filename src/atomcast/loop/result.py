"""What a run returns: the weights, their certificate, and the account of how they were found."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from atomcast.data.prepared import described
from atomcast.messages.status import Status
from atomcast.plots.page.story import Story, fold_tables, preparation_tables

if TYPE_CHECKING:
    from atomcast.loop.trace import Trace
    from atomcast.network.ledger import Ledger


@dataclass(frozen=True)
class Result:
    """The outcome of a run; the gap is the gap of the weights returned.

    Parameters
    ----------
    objective : float
        The objective at the weights.
    gap : float or None
        A bound on objective - optimum that everybody can check; None where there can be none,
        over the span of the atoms.
    relative_gap : float or None
        The gap divided by the objective (or by a tiny share of the objective at zero, if that is
        larger).
    rounds : int
        Steps taken.
    status : {"optimal", "max_rounds", "stopped", "time_limit", "interrupted", "reached"}
        Why the run ended. "optimal": the relative gap is within the tolerance; "interrupted": by
        Ctrl-C; "reached": the number of atoms or the residual that was asked for.
    atom_ids, atom_weights : arrays of shape (k,)
        Global ids and weights of the atoms in the solution.
    n : int
        How many atoms there are in all.
    atom_extras : array of shape (k, m)
        What travelled with each of these atoms besides its values: a stump's threshold, a label.
    image : array of shape (d,) or None
        A alpha, the fitted combination of atoms, where atoms are vectors.
    trace : Trace
        A row a round.
    ledger : Ledger
        What was sent.
    content : object or None
        What the active set says of the atoms in the solution, where ids do not tell enough: the
        support vectors of a kernel machine.
    radius : dict of int to float
        By node of this process, the largest distance from an atom to one that might be proposed,
        for `MCenters`.
    family : int
        How many ids belong to each of the n places: more than one where each stands for a family
        of atoms.
    partial : bool
        Whether the weights of atoms on other processes are not here, for their owners keep them.
    """

    objective: float
    gap: Any  # a float, as callers of all but pursuits may rely on
    relative_gap: Any
    rounds: int
    status: Status
    atom_ids: NDArray[np.int64]
    atom_weights: NDArray[np.float64]
    n: int
    atom_extras: NDArray[np.float64] = field(repr=False)
    image: NDArray[np.float64] | None = field(repr=False)
    trace: Trace = field(repr=False)
    ledger: Ledger = field(repr=False)
    content: Any = field(default=None, repr=False)
    radius: dict[int, float] = field(default_factory=dict, repr=False)
    family: int = field(default=1, repr=False)
    partial: bool = field(default=False, repr=False)

    @property
    def uncertified(self) -> tuple[str, ...]:
        """Parties whose atoms the gap does not count, for they had no budget left to propose."""
        return self.ledger.uncertified

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weight of every atom by global id, shape (n,).

        Where a place stands for a family of atoms that are never enumerated, such as all stumps
        over a feature, it is the sum over the family.
        """
        places = self.atom_ids if self.family == 1 else self.atom_ids // self.family
        weights: NDArray[Any] = np.bincount(places, self.atom_weights, minlength=self.n)
        return weights

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self._story(None).summary()

    def report(self, path: str | PathLike[str], model: Any = None) -> Path:
        """Write a page of HTML that tells of the run: progress, atoms, network, disclosures.

        It stands by itself and loads nothing. Needs matplotlib.

        Parameters
        ----------
        path : path
            The file to write.
        model : estimator, optional
            The estimator of this result: its name, parameters and feature names are on the page
            then, and the folds of its cross-validation.
        """
        return self._story(model).write(path)

    def _story(self, model: Any) -> Story:
        ledger, ids = self.ledger, self.atom_ids.tolist()
        known = {one.atom: one.name for one in ledger.disclosures}
        # Where a model has several weights for an atom, ids count them, and are none of atoms.
        plain = ledger.nodes == 1 or known.keys() >= set(ids)
        features = getattr(model, "feature_names_in_", ())
        names = (dict(enumerate(features)) if len(features) == self.n else known) if plain else {}
        prepared = getattr(model, "preparation_", ())
        order = np.argsort(-np.abs(self.atom_weights), kind="stable").tolist()
        weights = self.atom_weights.tolist()
        return Story(
            title=f"{type(model).__name__ if model is not None else 'A run'}: {self.status}",
            figures={
                "objective": f"{self.objective:.8g}",
                "certified gap": "none" if self.gap is None else f"{self.gap:.3g}",
                "relative gap": "none" if self.gap is None else f"{self.relative_gap:.1e}",
                "rounds": f"{self.rounds:,}",
                "weights that are not zero": f"{len(ids):,} of {self.n:,}",
                "atoms sent": f"{ledger.atoms_sent:,}",
                "values sent": f"{ledger.values:,}",
                "bytes sent": f"{ledger.bytes:,}",
                "nodes": f"{ledger.nodes:,}",
            },
            atoms=[(ids[k], names.get(ids[k], ""), weights[k]) for k in order],
            disclosures=ledger.disclosures,
            told=ledger.told,
            traffic={kind: count for kind, count in ledger.by_kind().items() if count.bytes},
            trace=self.trace,
            ledger=ledger,
            owned=plain,
            parameters=model.get_params(deep=False) if model is not None else {},
            tables=[*fold_tables(model), *preparation_tables(described(prepared))],
        )
