"""The folds of a cross-validation: a path of models for each, and its losses on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from atomcast.data.shards import Shards
from atomcast.estimators.condensed import Condensed, Tables
from atomcast.estimators.held_out import Floats, Fold, HeldOut, Rows, held_out_and_rest
from atomcast.estimators.radii import radius_names
from atomcast.estimators.side_by_side import side_by_side
from atomcast.estimators.whole_paths import WholePath
from atomcast.loop.interrupting import all_or_nothing
from atomcast.loop.journal import Journal
from atomcast.network.joined_ledgers import joined
from atomcast.network.ledger import Ledger

if TYPE_CHECKING:
    from atomcast.estimators.path_cv import PathCV

#: Warm starts take every so many radii.
LEAD = 5

#: Held-out rows are predicted by so many models at a time that they have so many coefficients.
TOGETHER = 1 << 22

#: Losses of a fold, its models, and what was sent for it.
FoldPath = tuple[Floats, Any, Ledger]
#: Coefficients and intercept.
Model = tuple[Floats, Any]
#: What a sparse matrix is made of.
PARTS = ("data", "indices", "indptr", "shape")


class Rated(NamedTuple):
    """A target, and how much each of its rows counts, if not all count the same."""

    target: Any
    weights: Floats | None

    def rows(self, rows: Rows) -> Rated:
        """Some of the rows."""
        return Rated(self.target[rows], None if self.weights is None else self.weights[rows])


class Trial:
    """All folds of a cross-validation, `jobs` of them at a time.

    What radii are compared by is the loss on held-out rows, or minus what the scorer says.
    """

    def __init__(
        self,
        model: PathCV,
        rated: Rated,
        folds: Sequence[Fold],
        shards: Shards,
        cluster: Any,
        journal: Journal,
        jobs: int,
        scorer: Any,
        tables: Tables | None,
        whole: Callable[[Condensed], WholePath | None],
    ) -> None:
        self._model, self._rated, self._folds = model, rated, folds
        self._scorer, self._tables, self._whole = scorer, tables, whole
        self._known: dict[int, tuple[Condensed | None, WholePath | None]] = {}
        self.journal, self._jobs = journal, jobs
        self._shards, self._cluster = shards, cluster
        #: What was sent, by the fold that it was sent for.
        self.ledgers: list[tuple[str, Ledger]] = []
        #: Coefficients and intercepts of each fold, a row for each radius.
        self.paths: list[Any] = []

    def losses(self, betas: Floats, known: int = 0) -> Floats:
        """The losses on the held-out rows, shape (radii that are not known yet, folds, 2).

        Of each, the mean loss and what radii are compared by.
        """
        radii = [*leading_to(betas[:known]), *betas[known:].tolist()]
        works = [partial(self._fold, k, radii) for k in range(len(self._folds))]
        new, kept = len(radii) - (len(betas) - known), self.journal.kept
        columns, paths = [], []
        for k, work in enumerate(side_by_side(works, self._jobs)):
            name = f"{len(betas)} radii, fold {k}"
            columns.append(kept(f"losses of {name}", partial(self._entered, k, work, name)))
            paths.append(_noted_path(self.journal, name)[new:])
        before = self.paths or [path[:0] for path in paths]
        self.paths = [sparse.vstack(both, format="csr") for both in zip(before, paths, strict=True)]
        return np.stack(columns, axis=1)[new:]

    def _entered(self, k: int, work: Callable[[], FoldPath], name: str) -> Floats:
        """The losses of a fold, whose ledger and path are kept."""
        losses, path, ledger = work()
        self.ledgers.append((f"fold {k + 1}", ledger))
        for part in PARTS:
            self.journal.keep(f"{part} of {name}", np.asarray(getattr(path, part)))
        return losses

    def _fold(self, k: int, radii: list[float]) -> FoldPath:
        """The losses on the test rows of a fold and the model for each radius, and what was sent.

        Losses have the shape (radii, 2), models are rows of coefficients and intercept.
        """
        model, (train, test) = self._model, self._folds[k]
        objective, told = model._loss(*self._rated, train), self._rated.rows(test)
        held_out, rows = held_out_and_rest(self._shards, k, train, test, self._cluster)
        at_once = max(TOGETHER // (self._shards.count() * getattr(objective, "classes", 1)), 1)
        losses, path, sent = list[Floats](), list[Any](), list[Ledger]()
        with all_or_nothing():  # in other processes, too
            models = self._models(k, objective, rows, radii, sent)
            while part := list(islice(models, at_once)):
                together = _stacked(part)
                losses.append(self._losses(held_out, told, together, part[0][0].shape[:-1]))
                path.append(sparse.csr_array(together.reshape(len(part), -1)))
        ledger = joined([*(("", one) for one in sent), ("held-out rows", held_out.ledger())])
        return np.concatenate(losses), sparse.vstack(path, format="csr"), ledger

    def _models(
        self, k: int, objective: Any, rows: Shards, radii: list[float], sent: list[Ledger]
    ) -> Iterator[Model]:
        """Coefficients and intercept of each radius; what is sent for them is added to a list."""
        few, path = self._condensed(k, objective)
        if few is not None:
            found = None if path is None else path.models(radii)
            if found is not None:
                yield from zip(found, map(few.intercept, found), strict=True)
                return
            objective, rows = few.objective, few.shards
        problems, names = map(partial(self._model._ball, objective), radii), radius_names(radii)
        for result in self.journal.results(problems, rows, self._cluster, names):
            coef = self._model._coefficients(result, objective)
            image = np.asarray(result.image)
            yield coef, objective.intercept(image) if few is None else few.intercept(coef)
        sent.append(result.ledger)

    def _condensed(self, k: int, objective: Any) -> tuple[Condensed | None, WholePath | None]:
        """A fold with fewer rows, and its whole path, if these can be had; later radii go on."""
        if k not in self._known:
            few = None if self._tables is None else self._tables.of(self._folds[k][0], objective)
            self._known[k] = few, None if few is None else self._whole(few)
        return self._known[k]

    def _losses(
        self, held_out: HeldOut, told: Rated, models: Floats, scores: tuple[int, ...]
    ) -> Floats:
        """The mean loss of some models on the test rows, and what they are compared by."""
        count, _, width = models.shape
        sums = held_out.predicted(models.reshape(-1, width)[:, :-1].T)
        predicted = sums.reshape(len(sums), count, -1) + models[..., -1]
        losses = self._model._held_out_losses(told.target, predicted)
        compared = mean = np.average(losses, axis=0, weights=told.weights)
        if self._scorer is not None:
            score = partial(self._model._score, self._scorer, told)
            told_apart = predicted.swapaxes(0, 1).reshape(count, -1, *scores)
            compared = -np.array([*map(score, told_apart)])
        return np.column_stack([mean, compared])


def leading_to(betas: Floats) -> list[float]:
    """Some of the radii up to the last: warm starts need not be so close together."""
    return betas[(len(betas) - 1) % LEAD :: LEAD].tolist()


def _stacked(models: Sequence[Model]) -> Floats:
    """Coefficients, then intercept, of each score, shape (n_models, n_scores, n_features + 1)."""
    scores, width = np.atleast_2d(models[0][0]).shape
    stacked = np.empty((len(models), scores, width + 1))
    for row, (coef, intercept) in zip(stacked, models, strict=True):
        row[:, :-1], row[:, -1] = coef, intercept
    return stacked


def _noted_path(journal: Journal, name: str) -> Any:
    """The models of a fold, from what the journal has of them."""
    parts: Any = [journal.note(f"{part} of {name}") for part in PARTS]
    return sparse.csr_array(tuple(parts[:3]), shape=tuple(parts[3]))
