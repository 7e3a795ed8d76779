"""The certificate of a saved model: how good it is, and what was sent for it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_choice, check_count
from atomcast.data.party_names import COORDINATOR_NAME, checked_party_names
from atomcast.messages.status import Status
from atomcast.network.disclosure import COORDINATOR, Disclosed, Disclosure
from atomcast.network.wave import Count
from atomcast.storage.container import Arrays, ModelFile, json_object, text_array, texts_of

#: The columns of the table of disclosures, and what texts are in files that lack them.
_NUMBERS = ("round", "node", "atom", "values")
_TEXTS = {"name": "", "phase": "", "kind": "atom"}


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
    disclosures, told : tuples of Disclosure
        Which atom left which node in which round, and what else was told to all: the target, and
        predictions for held-out rows.
    parties : tuple of str or None
        The names of the nodes.
    uncertified : tuple of str
        Parties whose atoms the gap does not count.
    audit_heads : dict of str to str
        By party, where the audit log of its node ended.
    """

    objective: float
    gap: float | None
    relative_gap: float | None
    rounds: int
    status: Status
    nodes: int
    values: int
    bytes: int
    messages: int
    atoms_sent: int
    by_kind: dict[str, Count] = field(repr=False)
    disclosures: tuple[Disclosure, ...] = field(repr=False)
    told: tuple[Disclosure, ...] = field(default=(), repr=False)
    parties: tuple[str, ...] | None = None
    uncertified: tuple[str, ...] = ()
    audit_heads: dict[str, str] = field(default_factory=dict, repr=False)


def certificate_of(estimator: Any) -> Certificate | None:
    """The certificate of an estimator, whether it was fitted here or loaded from a file.

    None if there was nothing to fit, as for a sparse coder.
    """
    # A loaded model that was fitted again has both: the result is the newer one.
    if not hasattr(estimator, "result_"):
        return cast("Certificate | None", getattr(estimator, "certificate_", None))
    result = estimator.result_
    ledger = result.ledger
    return Certificate(
        objective=float(result.objective),
        gap=result.gap,
        relative_gap=result.relative_gap,
        rounds=int(result.rounds),
        status=result.status,
        nodes=ledger.nodes,
        values=ledger.values,
        bytes=ledger.bytes,
        messages=ledger.messages,
        atoms_sent=ledger.atoms_sent,
        by_kind={kind: count for kind, count in ledger.by_kind().items() if count.bytes},
        disclosures=tuple(ledger.disclosures),
        told=tuple(ledger.told),
        parties=ledger.parties,
        uncertified=ledger.uncertified,
        audit_heads=dict(ledger.audit_heads),
    )


def certificate_in(file: ModelFile) -> Certificate | None:
    """The certificate in a model file; None if there was nothing to fit."""
    if "certificate" in file.header and file.header["certificate"] is None:
        return None
    saved = dict(json_object(file.header, "certificate"))
    for key in ("objective", "gap", "relative_gap"):
        saved[key] = None if key != "objective" and saved[key] is None else float(saved[key])
    for key in ("rounds", "nodes", "values", "bytes", "messages", "atoms_sent"):
        check_count(key, saved[key], "in the certificate", 0)
    check_choice("status", saved["status"], get_args(Status))
    saved["by_kind"] = {
        kind: Count(**{unit: check_count(unit, n, kind, 0) for unit, n in count.items()})
        for kind, count in json_object(saved, "by_kind").items()
    }
    parties = saved["parties"] = _parties_in(saved)
    saved["uncertified"] = tuple(map(str, saved.get("uncertified", ())))
    heads = json_object(saved, "audit_heads") if "audit_heads" in saved else {}
    saved["audit_heads"] = {str(name): str(head) for name, head in heads.items()}
    entries = _entries_in(file, parties)
    saved["disclosures"] = tuple(one for one in entries if one.kind == "atom")
    saved["told"] = tuple(one for one in entries if one.kind != "atom")
    return Certificate(**saved)


def _parties_in(saved: dict[str, Any]) -> tuple[str, ...] | None:
    """The names of the nodes; files of schema version 1 have none."""
    names = saved.get("parties")
    return None if names is None else checked_party_names(names, saved["nodes"])


def _entries_in(file: ModelFile, parties: tuple[str, ...] | None) -> list[Disclosure]:
    """All that was disclosed, in order; files of schema version 1 know of atoms only."""
    columns = [integers(file.arrays[f"disclosures.{key}"]).tolist() for key in _NUMBERS]
    texts = [
        texts_of(file.arrays[f"disclosures.{key}"])
        if key == "name" or file.header["schema"] > 1
        else [default] * len(columns[0])
        for key, default in _TEXTS.items()
    ]
    entries = []
    for round, node, atom, values, name, phase, kind in zip(*columns, *texts, strict=True):
        check_choice("kind", kind, get_args(Disclosed))
        party = "" if parties is None else _party(node, parties)
        entries.append(Disclosure(round, node, atom, name, values, phase, party, kind))
    return entries


def _party(node: int, parties: tuple[str, ...]) -> str:
    if node == COORDINATOR:
        return COORDINATOR_NAME
    if not 0 <= node < len(parties):
        raise ValueError(f"there is no node {node}")
    return parties[node]


def integers(array: NDArray[Any]) -> NDArray[np.int64]:
    """A vector of whole numbers."""
    if array.dtype != np.int64 or array.ndim != 1:
        raise ValueError(f"whole numbers were expected, got {array.dtype} of shape {array.shape}")
    return array


def certificate_header(certificate: Certificate) -> dict[str, Any]:
    """A certificate without its disclosures, as JSON values."""
    apart = ("disclosures", "told")
    saved = {key: value for key, value in asdict(certificate).items() if key not in apart}
    for key in ("uncertified", "audit_heads"):  # most models have none
        if not saved[key]:
            del saved[key]
    # JSON has no infinity, which is the gap of a run that never came to a feasible point.
    for key in ("objective", "gap", "relative_gap"):
        if saved[key] is not None and not math.isfinite(saved[key]):
            saved[key] = str(saved[key])
    return saved


def disclosure_arrays(certificate: Certificate) -> Arrays:
    """All that was disclosed as one array a column."""
    entries = (*certificate.disclosures, *certificate.told)
    arrays: Arrays = {
        f"disclosures.{key}": np.array([getattr(one, key) for one in entries], dtype=np.int64)
        for key in _NUMBERS
    }
    for key in _TEXTS:
        arrays[f"disclosures.{key}"] = text_array(getattr(one, key) for one in entries)
    return arrays
