"""The certificate of a saved model: how good it is, and what was sent for it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_choice, check_count
from atomcast.network.ledger import Count, Disclosure
from atomcast.result import Status
from atomcast.saving.container import Arrays, ModelFile, json_object, text_array, texts_of

_DISCLOSED = ("round", "node", "atom", "values")


@dataclass(frozen=True)
class Certificate:
    """What is known of how a model was fitted: its quality, and what was sent for it.

    Parameters
    ----------
    objective, gap, relative_gap, rounds, status
        As in `Result`.
    nodes : int
        How many nodes took part.
    values, bytes, messages, atoms_sent : int
        The totals of the ledger.
    by_kind : dict
        The traffic of each kind of message, as in `Ledger.by_kind`.
    disclosures : tuple of Disclosure
        Which atom left which node in which round.
    """

    objective: float
    gap: float
    relative_gap: float
    rounds: int
    status: Status
    nodes: int
    values: int
    bytes: int
    messages: int
    atoms_sent: int
    by_kind: dict[str, Count] = field(repr=False)
    disclosures: tuple[Disclosure, ...] = field(repr=False)


def certificate_of(estimator: Any) -> Certificate:
    """The certificate of an estimator, whether it was fitted here or loaded from a file."""
    # A loaded model that was fitted again has both: the result is the newer one.
    if not hasattr(estimator, "result_"):
        return cast(Certificate, estimator.certificate_)
    result = estimator.result_
    ledger = result.ledger
    return Certificate(
        objective=float(result.objective),
        gap=float(result.gap),
        relative_gap=float(result.relative_gap),
        rounds=int(result.rounds),
        status=result.status,
        nodes=ledger.nodes,
        values=ledger.values,
        bytes=ledger.bytes,
        messages=ledger.messages,
        atoms_sent=ledger.atoms_sent,
        by_kind={kind: count for kind, count in ledger.by_kind().items() if count.bytes},
        disclosures=tuple(ledger.disclosures),
    )


def certificate_in(file: ModelFile) -> Certificate:
    """The certificate in a model file."""
    saved = dict(json_object(file.header, "certificate"))
    for key in ("objective", "gap", "relative_gap"):
        saved[key] = float(saved[key])
    for key in ("rounds", "nodes", "values", "bytes", "messages", "atoms_sent"):
        check_count(key, saved[key], "in the certificate", 0)
    check_choice("status", saved["status"], get_args(Status))
    saved["by_kind"] = {
        kind: Count(**{unit: check_count(unit, n, kind, 0) for unit, n in count.items()})
        for kind, count in json_object(saved, "by_kind").items()
    }
    columns = [integers(file.arrays[f"disclosures.{key}"]).tolist() for key in _DISCLOSED]
    names = texts_of(file.arrays["disclosures.name"])
    saved["disclosures"] = tuple(
        Disclosure(round=round, node=node, atom=atom, values=values, name=name)
        for round, node, atom, values, name in zip(*columns, names, strict=True)
    )
    return Certificate(**saved)


def integers(array: NDArray[Any]) -> NDArray[np.int64]:
    """A vector of whole numbers."""
    if array.dtype != np.int64 or array.ndim != 1:
        raise ValueError(f"whole numbers were expected, got {array.dtype} of shape {array.shape}")
    return array


def certificate_header(certificate: Certificate) -> dict[str, Any]:
    """A certificate without its disclosures, as JSON values."""
    saved = {key: value for key, value in asdict(certificate).items() if key != "disclosures"}
    # JSON has no infinity, which is the gap of a run that never came to a feasible point.
    for key in ("objective", "gap", "relative_gap"):
        saved[key] = saved[key] if math.isfinite(saved[key]) else str(saved[key])
    return saved


def disclosure_arrays(disclosures: tuple[Disclosure, ...]) -> Arrays:
    """Disclosures as one array a column."""
    arrays: Arrays = {
        f"disclosures.{key}": np.array([getattr(d, key) for d in disclosures], dtype=np.int64)
        for key in _DISCLOSED
    }
    return arrays | {"disclosures.name": text_array(d.name for d in disclosures)}
