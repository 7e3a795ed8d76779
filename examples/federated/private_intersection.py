"""Rows in common without keyed hashes: private set intersection, where a shared secret is too much.

With keyed hashes, every party that has the secret can test any id against the others' files.
Private set intersection (elliptic curve Diffie-Hellman) lets a party learn which of *its own* rows
the other has, and nothing of the rest. It wants an environment of its own:

    pip install openmined-psi
    python examples/federated/private_intersection.py
"""

from __future__ import annotations

import importlib

NORTH = [f"P{number:04d}" for number in range(0, 60)]
SOUTH = [f"P{number:04d}" for number in range(40, 100)]
#: The probability that a row is taken for common that is not.
FALSE = 1e-9


def main() -> None:
    """What each party sends, and what the one who asked learns."""
    try:
        psi = importlib.import_module("private_set_intersection.python")
    except ImportError:
        print("openmined-psi is not installed here: pip install openmined-psi shows it")
        return
    asks, answers = psi.client.CreateWithNewKey(True), psi.server.CreateWithNewKey(True)
    request = asks.CreateRequest(NORTH)  # north to south: its ids, under north's key
    setup = answers.CreateSetupMessage(FALSE, len(NORTH), SOUTH)  # south to north: its own
    response = answers.ProcessRequest(request)  # and north's, under both keys
    common = sorted(NORTH[row] for row in asks.GetIntersection(setup, response))
    print(f"north finds {len(common)} of its {len(NORTH)} rows at south: {common[0]} ...")
    print("sorted, and the same for the other parties, they are the order of rows to fit by")


if __name__ == "__main__":
    main()
