"""How much memory kernel values may take, and in which precision they are kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np


@dataclass(frozen=True)
class Storage:
    """A budget and a precision: they decide how a problem is solved, not which one it is.

    Parameters
    ----------
    cache_bytes : int
        The memory that kernel values may take.
    dtype : float32 or float64
        The precision in which they are kept where there are many.
    """

    cache_bytes: int
    dtype: Any = np.float64

    #: A checkpoint may be resumed with another budget and to another tolerance.
    immaterial: ClassVar[bool] = True

    @property
    def points(self) -> int:
        """How many points there may be if the kernel values of all pairs are to be kept."""
        return math.isqrt(self.cache_bytes // np.dtype(self.dtype).itemsize)
