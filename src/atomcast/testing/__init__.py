"""Suites that parts of atomcast pass, and that parts of your own should: run them in your tests.

Each raises AssertionError with a sentence that says what the part promises and does not keep.
"""

from atomcast.testing.atoms import check_atoms
from atomcast.testing.clusters import check_cluster
from atomcast.testing.domains import check_domain
from atomcast.testing.objectives import check_objective
from atomcast.testing.steps import check_step

__all__ = ["check_atoms", "check_cluster", "check_domain", "check_objective", "check_step"]
