"""A party's own part of a prediction: only for a model that it has helped to fit."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from atomcast.federated.consent import RefusedError
from atomcast.federated.holding import Holding
from atomcast.federated.kinds import Floats, Predict


def own_part(predict: Predict, start: int, fitted: Holding, new: Holding) -> Floats:
    """The sum over this party's features, by name, a number for each row of the new data.

    Parameters
    ----------
    predict : Predict
    start : int
        The global id of the first feature of this party.
    fitted, new : Holding
        The data that the model was fitted to, and those to predict for.
    """
    places = {new.name(j): j for j in range(new.features)}
    own = (predict.ids >= start) & (predict.ids < start + fitted.features)
    weights = np.zeros(new.features)
    for id, weight in zip((predict.ids[own] - start).tolist(), predict.weights[own], strict=True):
        if fitted.name(id) not in places:
            raise RefusedError(f"the new data lack the feature {fitted.name(id)!r}")
        weights[places[fitted.name(id)]] = weight
    used = np.flatnonzero(weights)
    columns = new.matrix[:, used]
    if sparse.issparse(columns):
        columns = columns.toarray()
    return np.asarray(columns.astype(np.float64) @ weights[used])
