"""What atoms say that they are able to do, quickly asked."""

import numpy as np
import pytest
from scipy import sparse

from atomcast._checks import is_able
from atomcast.atoms import held
from atomcast.atoms.explicit import DenseAtoms, SparseAtoms

PROTOCOLS = [
    held.BatchedAtoms,
    held.BoundedAtoms,
    held.DivisibleAtoms,
    held.SpacedAtoms,
    held.FollowingAtoms,
    held.SummedAtoms,
    held.AtomFamilies,
]


class Wrapper:
    """Another object's abilities, which the class does not have."""

    def __init__(self, inside):
        self.inside = inside

    def __getattr__(self, name):
        return getattr(self.inside, name)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_it_is_isinstance(protocol):
    dense, rare = DenseAtoms(np.eye(3)), SparseAtoms(sparse.csc_array(np.eye(3)))
    for holder in (dense, rare, Wrapper(dense), Wrapper(rare), object()):
        assert is_able(holder, protocol) == isinstance(holder, protocol)
