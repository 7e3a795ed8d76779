"""`atomcast fit` on networks other than a star, and their pictures."""

import json

import networkx as nx
import pytest

from atomcast.cluster.mpi.job import job_rank
from atomcast.commands.engines import chosen_engine, make_cluster

FIT = ("fit", "lasso", "all.csv", "--target", "y.npy", "--beta", 800, "--nodes", 4, "--json")


def fitted(run, *arguments):
    outcome = run(*FIT, *arguments)
    assert outcome.exit_code == 0, outcome.stderr
    return json.loads(outcome.stdout)


def test_the_network_changes_the_cost_only(run, files):
    nx.write_edgelist(nx.cycle_graph(4), "ring.edges", data=False)
    star = fitted(run)
    tree = fitted(run, "--topology", "tree")
    spanning = fitted(run, "--topology", "ring.edges")
    flooding = fitted(run, "--topology", "ring.edges", "--broadcast", "flooding")
    assert len({summary["objective"] for summary in (star, tree, spanning, flooding)}) == 1
    assert tree["values"] < star["values"] < flooding["values"]
    assert spanning["values"] == pytest.approx(tree["values"], rel=0.05)


def test_lost_messages_change_the_cost_only(run, files):
    plain, lossy = fitted(run), fitted(run, "--loss", 0.3)
    assert lossy["objective"] == pytest.approx(plain["objective"], rel=1e-4)
    assert lossy["status"] == "optimal"
    assert lossy["values"] > plain["values"]
    drifting = fitted(run, "--loss", 0.3, "--recovery", "none", "--max-rounds", 5)
    assert drifting["objective"] >= plain["objective"] * (1 - 1e-4)


@pytest.mark.parametrize(("name", "begin"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_a_picture_of_the_network(run, files, tmp_path, name, begin):
    assert fitted(run, "--plot", name)["plot"] == name
    with open(name, "rb") as file:
        assert file.read().startswith(begin)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--topology", "ring"), "topology must be one of 'star', 'tree', 'complete'"),
        (("--broadcast", "flooding"), "must be one of 'improved', 'plain'"),
        (("--loss", "2"), "loss must be a probability in [0, 1), got 2.0"),
        (("--recovery", "raft"), "recovery must be one of 'log', 'none'"),
        (("--loss", "0.1", "--engine", "ray"), "are for --engine local, not ray"),
        (("--mpi-option", "--bind-to"), "--mpi-option is for the mpirun that --engine mpi starts"),
        (("--deadline", "5"), "--deadline 5 is for --engine mpi and ray"),
        (("--deadline", "-1", "--engine", "mpi"), "deadline must be a finite number"),
        (("--plot", "a.bmp"), "the suffix '.bmp' is not known"),
    ],
)
def test_mistakes_are_named(run, files, arguments, message):
    outcome = run(*FIT, *arguments)
    assert outcome.exit_code != 0
    assert message in " ".join(outcome.stderr.split())


def test_options_go_to_mpirun_as_a_list(run, files, monkeypatch):
    from atomcast import LocalCluster, MPICluster

    asked = []

    def launch(nodes, **how):
        asked.append((nodes, how))
        return LocalCluster(nodes)

    monkeypatch.setattr(MPICluster, "launch", launch)
    fitted(run, "--engine", "mpi")
    words = ("--mpi-option=--map-by", "--mpi-option", ":OVERSUBSCRIBE", "--mpi-option=a b")
    fitted(run, "--engine", "mpi", *words, "--deadline", "30")
    assert asked == [
        (4, {}),
        (4, {"options": ["--map-by", ":OVERSUBSCRIBE", "a b"], "deadline": 30.0}),
    ]


def test_a_rank_works_with_the_others_unless_told_otherwise(monkeypatch):
    assert (chosen_engine(None), chosen_engine("ray")) == ("local", "ray")
    monkeypatch.setenv("PMIX_RANK", "3")
    assert job_rank() == 3
    assert (chosen_engine(None), chosen_engine("mpi")) == ("mpi", "mpi")
    with pytest.raises(ValueError, match=r"--engine local would let every rank .* by itself"):
        chosen_engine("local")
    with pytest.raises(ValueError, match="if you start mpirun yourself, give the option there"):
        make_cluster("mpi", 2, ("star", None, 0.0, "log"), ["--bind-to"], None)


def test_a_page_on_the_fit(run, files, tmp_path):
    done = fitted(run, "--report", "run.html")
    assert done["report"] == "run.html"
    assert "<svg" in (tmp_path / "run.html").read_text(encoding="utf-8")
