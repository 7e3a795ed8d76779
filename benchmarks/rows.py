"""What benchmarks find: comparisons with other libraries, and figures beside what should be."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Row:
    """One problem, and how long each library takes to the same certified gap.

    Parameters
    ----------
    problem : str
    size : int
        How many features, groups or examples the model has.
    seconds : dict
        The least processor time by library, "atomcast" among them; whoever did not reach the gap
        is missing.
    note : str
        What else there is to say, such as how well the models predict.
    """

    problem: str
    size: int
    seconds: dict[str, float]
    note: str = ""

    @property
    def ratio(self) -> float:
        """Our time divided by that of the fastest other library; NaN if there is none."""
        others = [taken for name, taken in self.seconds.items() if name != "atomcast"]
        return self.seconds.get("atomcast", float("nan")) / min(others, default=float("nan"))


@dataclass(frozen=True)
class Figure:
    """Something else that was measured.

    Parameters
    ----------
    what : str
    value : float
    unit : str
    beside : str
        What it is to be compared with: a limit of the machine, measured in the same run.
    at_most, at_least : float, optional
        What it should be.
    """

    what: str
    value: float
    unit: str = ""
    beside: str = ""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool:
        """Whether it is what it should be."""
        above = self.at_most is not None and not self.value <= self.at_most
        below = self.at_least is not None and not self.value >= self.at_least
        return not (above or below)

    @property
    def aim(self) -> str:
        """What it should be, in words."""
        bounds = (("at most", self.at_most), ("at least", self.at_least))
        return " and ".join(f"{how} {bound:g}" for how, bound in bounds if bound is not None)


def tell(found: Row | Figure) -> None:
    """Print it as a line of JSON, which `heard` reads."""
    print(json.dumps(asdict(found), default=lambda number: number.item()), flush=True)


def heard(line: str) -> Row | Figure | None:
    """What a line of JSON tells; None if it is another line."""
    if not line.startswith(('{"problem"', '{"what"')):
        return None
    told = json.loads(line)
    return Row(**told) if "problem" in told else Figure(**told)


def least_times(fits: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The least processor time of several calls of each, which take turns."""
    seconds = dict.fromkeys(fits, float("inf"))
    for _ in range(repeats):
        for name, fit in fits.items():
            start = time.process_time()
            fit()
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds
