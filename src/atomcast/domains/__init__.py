"""The sets that weights live in."""

from atomcast.domains.base import Domain, L1Ball, Simplex, onto_simplex
from atomcast.domains.group_ball import GroupBall

__all__ = ["Domain", "GroupBall", "L1Ball", "Simplex", "onto_simplex"]
