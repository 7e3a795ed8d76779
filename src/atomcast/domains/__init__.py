"""The sets that weights live in: which atom is best, how far from optimal we are, the way in."""

from atomcast.domains.balls import Domain, L1Ball, Simplex, SolidSimplex, onto_simplex
from atomcast.domains.group_ball import GroupBall, Groups

__all__ = ["Domain", "GroupBall", "Groups", "L1Ball", "Simplex", "SolidSimplex", "onto_simplex"]
