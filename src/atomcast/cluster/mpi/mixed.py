"""Mixtures of all ranks on their way to rank 0, and what it makes of them on its way back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from atomcast.cluster.mixing import Said, as_message, cast_point, enter, from_message, own_mixtures
from atomcast.cluster.mpi.buffers import bytes_of_rank_0, gather_at_0
from atomcast.cluster.mpi.watch import ATOMS, SCORING, Pulse, by_all
from atomcast.cluster.node import Fleet
from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.network.ledger import Accountant


def mixed_point(
    comm: Any,
    pulse: Pulse,
    fleet: Fleet,
    replica: Replica,
    best: float,
    accountant: Accountant[Any],
) -> Atom:
    """The point that rank 0 finds, and the account of how, on every rank."""
    pulse.at = (replica.round, SCORING)
    with by_all(comm, pulse):
        own = as_message(own_mixtures(fleet, replica, best))
    pulse.at = (replica.round, ATOMS)
    heard = gather_at_0(comm, own)
    answer, said = np.zeros(0), list[Said]()
    with by_all(comm, pulse):
        if heard:
            mixtures = [mixture for part in heard for mixture in from_message(part, replica)]
            answer = np.asarray(cast_point(accountant, replica, best, mixtures).values)
            said = [Said.of(mixture) for mixture in mixtures]
    pulse.at = (replica.round, ATOMS)
    answer = np.frombuffer(bytes_of_rank_0(comm, answer.tobytes()), dtype=np.float64)
    account = json.loads(bytes_of_rank_0(comm, json.dumps(said).encode()))
    if not heard:
        enter(accountant, replica, [Said(*row) for row in account])
    return Atom(0, len(answer), answer)
