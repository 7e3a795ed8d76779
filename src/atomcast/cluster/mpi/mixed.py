"""Mixtures of all ranks on their way to rank 0, and what it makes of them on its way back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from atomcast.cluster.keeping import keep_own
from atomcast.cluster.mixing import Said, as_message, cast_point, enter, from_message, mixers_of
from atomcast.cluster.mpi.asking import asking
from atomcast.cluster.mpi.buffers import bytes_of_rank_0, gather_at_0
from atomcast.cluster.mpi.watch import ATOMS, SCORING, Pulse, by_all
from atomcast.cluster.node import Fleet
from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.mixture import Mixture
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
        mixers = mixers_of(fleet, replica)
        own = as_message([one for mixer in mixers for one in mixer.said(replica, best)])
    pulse.at = (replica.round, ATOMS)
    mixtures, heard = list[Mixture](), gather_at_0(comm, own)
    with by_all(comm, pulse):
        mixtures = [mixture for part in heard for mixture in from_message(part, replica)]
    pulse.at = (replica.round, ATOMS)
    said = json.dumps([Said.of(mixture) for mixture in mixtures]).encode()
    account = json.loads(bytes_of_rank_0(comm, said))
    if not heard:
        enter(accountant, replica, [Said(*row) for row in account])
    answer = np.zeros(0)
    with by_all(comm, pulse), asking(comm, mixers, replica, accountant) as asked:
        if heard:
            answer = np.asarray(cast_point(accountant, replica, best, mixtures, asked).values)
    pulse.at = (replica.round, ATOMS)
    answer = np.frombuffer(bytes_of_rank_0(comm, answer.tobytes()), dtype=np.float64)
    point = Atom(0, len(answer), answer)
    if not replica.step.reveals:
        keep_own(mixers, replica, point)
    return point
