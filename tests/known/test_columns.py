"""Products of known columns with each other, however they are stored."""

import numpy as np
import pytest
from scipy import sparse

from atomcast.known.sign_columns import with_appended
from atomcast.messages.atom import Atom


def stored(matrix, dense):
    """The columns of a matrix as atoms that everybody knows."""
    atoms = []
    for j, column in enumerate(matrix.T):
        places = np.flatnonzero(column).astype(np.int32)
        own = (column, None) if dense else (column[places], places)
        atoms.append(Atom(j, len(column), *own))
    return with_appended(None, len(matrix), atoms)


@pytest.mark.parametrize("share", [0.05, 0.5])  # multiplied by their nonzeros, and as dense ones
@pytest.mark.parametrize("dense", [False, True])
def test_products_of_columns_with_themselves_and_with_others(share, dense):
    matrix = sparse.random(2_500, 12, share, random_state=0).toarray()
    rng = np.random.default_rng(0)
    bends, chosen, others = rng.random(2_500), np.array([7, 2, 9]), np.array([0, 2])
    columns = stored(matrix, dense)
    bent = matrix.T @ (bends[:, None] * matrix)
    np.testing.assert_allclose(columns.cross(chosen, chosen, bends), bent[np.ix_(chosen, chosen)])
    np.testing.assert_allclose(columns.cross(chosen, others, bends), bent[np.ix_(chosen, others)])
    scales, which = rng.random((2, 2_500)), np.array([0, 1, 1])
    scaled = matrix[:, chosen] * scales[which].T
    products = columns.scaled_products(chosen, scales, which)
    np.testing.assert_allclose(products, scaled.T @ scaled)
