"""What nodes believe of atoms that were chosen for many signals, or by a pursuit."""

from dataclasses import replace

import numpy as np
import pytest

from atomcast.atoms.pursued import PursuitActiveSet, lengths_of
from atomcast.atoms.signals import SignalsActiveSet
from atomcast.errors import FalseMessageError
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Choice
from atomcast.objectives import SquaredError

RNG = np.random.default_rng(0)
ATOMS = RNG.standard_normal((3, 6))


def chosen(signals):
    """Signals 0 and 2 choose atom 4, which is row 0, and signal 1 chooses atom 7, row 1."""
    atom, signal = np.array([0, 1, 0]), np.array([0, 1, 2])
    score = -2.0 * np.einsum("kd,kd->k", ATOMS[atom], signals[signal])
    choice = Choice(signal, np.array([4, 7, 4]), score)
    return Agreement(9.0, np.array([1, 0]), np.array([4, 7]), score[:2], choice=choice)


def test_atoms_that_signals_have_chosen_are_compared_with_every_score():
    signals = RNG.standard_normal((4, 6))
    agreement = chosen(signals)
    atoms = [Atom(4, 6, ATOMS[0]), Atom(7, 6, ATOMS[1])]
    active = SignalsActiveSet(signals)
    active.receive(atoms, agreement, {}, 1.0)
    np.testing.assert_array_equal(active.dictionary, ATOMS[:2])
    np.testing.assert_allclose(active.gram, ATOMS[:2] @ ATOMS[:2].T)
    score = agreement.choice.score * [1.0, 1.0, 1.0 + 1e-9]
    lie = agreement._replace(choice=replace(agreement.choice, score=score))
    with pytest.raises(FalseMessageError, match="node 1 said that atom 4 has the score"):
        SignalsActiveSet(signals).receive(atoms, lie, {}, 1.0)
    with pytest.raises(FalseMessageError, match="it has 5 values instead of 6"):
        SignalsActiveSet(signals).receive([Atom(4, 5, ATOMS[0, :5]), atoms[1]], agreement, {}, 1.0)


@pytest.mark.parametrize("normalize", [False, True])
def test_the_winner_of_a_pursuit_is_compared_with_its_score(normalize):
    Y = RNG.standard_normal((6, 2))
    objective = SquaredError(Y, fit_intercept=True)
    unit = lengths_of(ATOMS[:1].T, centred=True)[0] if normalize else 1.0
    score = np.linalg.norm(2.0 * (Y - Y.mean(axis=0)).T @ ATOMS[0]) / unit
    agreement = Agreement(score, np.array([2]), np.array([5]), np.array([score]))
    PursuitActiveSet(objective, normalize).receive([Atom(5, 6, ATOMS[0])], agreement, {}, 1.0)
    lie = agreement._replace(score=agreement.score * (1.0 - 1e-9))
    with pytest.raises(FalseMessageError, match="node 2 said that atom 5 has the score"):
        PursuitActiveSet(objective, normalize).receive([Atom(5, 6, ATOMS[0])], lie, {}, 1.0)


def test_what_a_result_is_made_of_is_the_memory_of_the_codes():
    active = SignalsActiveSet(np.random.default_rng(0).standard_normal((50, 6)))
    active.append([Atom(id, 6, np.eye(6)[id]) for id in (4, 0, 5, 2)])
    weights = np.random.default_rng(1).standard_normal((4, 50))
    active.set_weights(np.where(weights > 0.0, weights, 0.0).ravel())
    before = active.codes.toarray()
    ids, found = active.support()
    assert np.shares_memory(found, active.codes.data)
    np.testing.assert_array_equal(active.codes.toarray(), before)
    atom, signal = np.divmod(ids, 50)
    np.testing.assert_array_equal(np.lexsort((atom, signal)), np.arange(len(ids)))
    there = np.zeros((50, 6))
    there[signal, atom] = found
    np.testing.assert_array_equal(there[:, [4, 0, 5, 2]], before)
