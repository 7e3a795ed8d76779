"""Three hospitals and a registry, each a process of its own: from keys to the disclosure report.

The registry knows the outcome of patients and coordinates the fit. Each hospital has other
patients, in another order, and other features of them. Everything below is what the parties would
type, each on its own machine, except that here one script speaks for all of them.

    python examples/federated/three_hospitals.py
"""

from __future__ import annotations

import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from atomcast import load_model
from atomcast.cli import app
from atomcast.federated.consent import Consents

OWNERS = {
    "north": ["age", "sex", "bmi"],
    "south": ["bp", "s1", "s2", "s3"],
    "east": ["s4", "s5", "s6"],
}
NODE = """
name = "{name}"
coordinator = "registry"
address = "127.0.0.1:{port}"
certificates = "certificates"

[data.cohort]
path = "patients.csv"
row_ids = "patient"
order = "order"
secret = "secret"

[policy]
deny = ["s[56]"]            # these two never take part, whatever is asked
atoms_per_run = 3
"""
COORDINATOR = """
name = "registry"
address = "127.0.0.1:{port}"
members = ["north", "south", "east"]
certificates = "certificates"
alias = "cohort"
order = "order"
secret = "secret"
patience = 300

[terms]
purpose = "what goes along with the progression of diabetes"
runs = 1
rounds = 50
atoms = 5
"""


def atomcast(*arguments: object) -> None:
    """What a party types: `atomcast ...`."""
    app([str(argument) for argument in arguments], standalone_mode=False)


def started(*arguments: object) -> subprocess.Popen[bytes]:
    """The same as a process of its own, which goes on."""
    command = [sys.executable, "-m", "atomcast.cli", *map(str, arguments)]
    return subprocess.Popen(command)


def make_certificates(homes: dict[str, Path], trial: Path) -> None:
    """Each party makes its keys; a trial authority signs their requests."""
    for name, home in homes.items():
        atomcast("node", "keys", name, "--out", home / "certificates", "--host", "127.0.0.1")
        atomcast("coordinator", "ca", trial, home / "certificates" / f"{name}.csr")
    for home in homes.values():
        for file in ("ca.pem", "revoked.pem"):
            (home / "certificates" / file).write_bytes((trial / file).read_bytes())


def write_tables(homes: dict[str, Path]) -> None:
    """Patients of each hospital, and their outcomes at the registry."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    rng = np.random.default_rng(0)
    for name, columns in OWNERS.items():
        own = X.sample(frac=0.95, random_state=int(rng.integers(1000)))
        table = own[columns].assign(patient=[f"P{row:04d}" for row in own.index])
        table.to_csv(homes[name] / "patients.csv", index=False)
    outcome = pd.DataFrame({"patient": [f"P{row:04d}" for row in y.index], "outcome": y})
    outcome.to_csv(homes["registry"] / "outcome.csv", index=False)


def align(homes: dict[str, Path]) -> None:
    """Each party hashes its ids with a secret that all share; one intersects the hashes."""
    secret = secrets.token_hex(32)
    for name, home in homes.items():
        (home / "secret").write_text(secret)
        table = home / ("outcome.csv" if name == "registry" else "patients.csv")
        how = ["--row-ids", "patient", "--out", home / "hashes"]
        atomcast("align", "hash", table, "--secret", home / "secret", *how)
    hashes = [home / "hashes" for home in homes.values()]
    for home in homes.values():
        atomcast("align", "order", *hashes, "--out", home / "order")


def approve(homes: dict[str, Path], waiting: subprocess.Popen[bytes]) -> None:
    """At each hospital, somebody reads the offer and approves it."""
    undecided = set(OWNERS)
    while undecided and waiting.poll() is None:
        for name in sorted(undecided):
            offers = Consents(homes[name] / "state").offers()
            if offers:
                config = ["--config", homes[name] / "node.toml"]
                if len(undecided) == len(OWNERS):
                    atomcast("node", "approve", *config)  # shows it
                atomcast("node", "approve", offers[0].id, "--by", f"Dr. {name.title()}", *config)
                undecided.remove(name)
        time.sleep(0.1)


def main() -> None:
    """Keys, alignment, nodes, approval, fit, reports."""
    with tempfile.TemporaryDirectory() as folder:
        homes = {name: Path(folder) / name for name in ("registry", *OWNERS)}
        for home in homes.values():
            home.mkdir()
        make_certificates(homes, Path(folder) / "trial")
        write_tables(homes)
        align(homes)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        (homes["registry"] / "coordinator.toml").write_text(COORDINATOR.format(port=port))
        nodes = []
        for name in OWNERS:
            config = homes[name] / "node.toml"
            config.write_text(NODE.format(name=name, port=port))
            nodes.append(started("node", "run", "--config", config))
        registry, model = homes["registry"], homes["registry"] / "model.safetensors"
        target = ["--target", f"{registry / 'outcome.csv'}:outcome", "--row-ids", "patient"]
        federated = ["--engine", "federated", "--config", registry / "coordinator.toml"]
        fit = started("fit", "lasso", "--beta", "700", *federated, *target, "--out", model)
        try:
            approve(homes, fit)
            assert fit.wait() == 0
        finally:
            for node in nodes:
                node.terminate()
                node.wait()
        certificate = load_model(model).certificate_
        for one in certificate.disclosures:
            print(f"{one.when}: {one.party} sent {one.name!r}, {one.values} values")
        for name in OWNERS:
            head = ["--head", certificate.audit_heads[name]]
            report = ["--report", homes[name] / "report.html"]
            atomcast("node", "audit", *head, *report, "--config", homes[name] / "node.toml")


if __name__ == "__main__":
    main()
