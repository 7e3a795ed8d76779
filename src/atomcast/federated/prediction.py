"""A party's own part of a prediction: only for a model that it has helped to fit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from scipy import sparse

from atomcast.federated.account import Account
from atomcast.federated.consent import Approval, RefusedError
from atomcast.federated.holding import Holding
from atomcast.federated.kinds import Floats, Predict
from atomcast.federated.run import weights_digest
from atomcast.federated.schema import encode


def permitted(
    predict: Predict, data: str, approvals: Iterable[Approval], account: Account
) -> tuple[Approval, str, str]:
    """The approval under which a prediction may be made, what it counts as, and the run it is of.

    The weights must be of a model that was fitted under the approval: others could be chosen so
    that a prediction is a column of the data. For other `data` (their digest) it is another one.
    """
    if len(predict.ids) != len(predict.weights):
        raise RefusedError("there must be a weight for each feature")
    digest = weights_digest(predict.ids, predict.weights)
    question = hashlib.sha256(encode(predict) + data.encode()).hexdigest()
    for approval in approvals:
        offer, used = approval.offer, account.predictions[approval.offer.id]
        if offer.predict != predict.alias or not approval.valid:
            continue
        runs = [run for run in account.problems[offer.id] if digest in account.runs[run].weights]
        if not runs:
            continue
        if question not in used and len(used) >= offer.predictions:
            raise RefusedError(f"the {offer.predictions} approved predictions are used up")
        return approval, question, runs[0]
    raise RefusedError(
        "a prediction needs an approval that names these data, and the weights of a model that was "
        "fitted under it"
    )


def own_part(predict: Predict, start: int, outputs: int, fitted: Holding, new: Holding) -> Floats:
    """The sum over this party's features, by name, row after row of the new data.

    Parameters
    ----------
    predict : Predict
    start : int
        The global id of the first feature of this party.
    outputs : int
        How many weights a feature has, and how many numbers a row.
    fitted, new : Holding
        The data that the model was fitted to, and those to predict for.
    """
    places = {new.name(j): j for j in range(new.features)}
    features, output = np.divmod(predict.ids, outputs)
    own = np.flatnonzero((features >= start) & (features < start + fitted.features))
    weights = np.zeros((new.features, outputs))
    for k in own.tolist():
        name = fitted.name(int(features[k]) - start)
        if name not in places:
            raise RefusedError(f"the new data lack the feature {name!r}")
        weights[places[name], output[k]] = predict.weights[k]
    used = np.flatnonzero(weights.any(axis=1))
    columns = new.matrix[:, used]
    if sparse.issparse(columns):
        columns = columns.toarray()
    return np.asarray(columns.astype(np.float64) @ weights[used]).ravel()
