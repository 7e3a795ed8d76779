"""One file for each figure or claim of the paper, with what the paper says of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from atomcast.experiments.figures.shape import Experiment


class Listed(NamedTuple):
    """What can be reproduced: what it is, and which options it takes.

    All of them know --quick and --out.
    """

    help: str
    options: str = ""


#: In the order in which `all` runs them. Each is a file of this folder, imported when it is run.
EXPERIMENTS = {
    "lower-bound": Listed(
        "The communication lower bound of section 4.2, next to what dFW really sends.",
    ),
    "topologies": Listed(
        "Communication against N on star, tree and graph, measured and by formula (section 4.1).",
        "runs",
    ),
    "clustering-bound": Listed(
        "The footnote of section 6.3 on clustering in kernel space: which pairs break its bound.",
        "runs synthetic download",
    ),
    "centers": Listed(
        "Lemma 1: the error that choosing among centers leaves (Algorithm 5), and its bound.",
        "runs jobs resume finished",
    ),
    "fig2a": Listed(
        "Figure 2(a): kernel SVM on Adult, dFW beside local FW and random subsets.",
        "runs synthetic download jobs resume finished",
    ),
    "fig2b": Listed(
        "Figure 2(b): Lasso on Dorothea, dFW beside local FW and random subsets.",
        "runs synthetic download jobs resume finished",
    ),
    "fig4": Listed(
        "Figure 4: dFW beside ADMM on Dorothea, by communication, iterations and local time.",
        "runs synthetic download resume finished",
    ),
    "fig3": Listed(
        "Figure 3: dFW beside ADMM on synthetic data of nine densities (full size takes hours).",
        "runs atom_density jobs resume finished",
    ),
    "fig5a": Listed(
        "Figure 5(a): runtime against N, on MPI ranks and by the simulator's clock.",
        "runs n",
    ),
    "scale": Listed(
        "Figure 5(a) with 8.7 million examples (takes 10 GB of memory and as much on disk).",
        "runs",
    ),
    "fig5b": Listed(
        "Figure 5(b): unbalanced data, exact dFW beside m-centers and random subsets.",
        "runs n resume finished",
    ),
    "fig5c": Listed(
        "Figure 5(c): kernel SVM where messages are lost, with and without a log.",
        "runs n synthetic download jobs resume finished",
    ),
}


def find(name: str) -> type[Experiment]:
    """The experiment of a name, from its file."""
    from atomcast.experiments.figures.shape import Experiment

    import_module(f"atomcast.experiments.figures.{name.replace('-', '_')}")
    return Experiment.known[name]
