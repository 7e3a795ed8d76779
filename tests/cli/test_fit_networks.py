"""`atomcast fit` on networks other than a star, and their pictures."""

import json

import networkx as nx
import pytest

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
        (("--plot", "a.bmp"), "the suffix '.bmp' is not known"),
    ],
)
def test_mistakes_are_named(run, files, arguments, message):
    outcome = run(*FIT, *arguments)
    assert outcome.exit_code != 0
    assert message in " ".join(outcome.stderr.split())
