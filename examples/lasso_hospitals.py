"""Three hospitals hold different features of the same patients; none of them shows its table.

Each hospital keeps its own columns in a file of its own. The fit broadcasts only the columns that
the model needs, and the ledger says which column left which hospital, and when.

    python examples/lasso_hospitals.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
from sklearn.datasets import load_diabetes

from atomcast import Lasso, LocalCluster, Shards, Solver


def write_parts(folder: Path) -> tuple[list[Path], pd.Series]:
    """Cut the diabetes data by columns, one file for each hospital."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    owners = {
        "north": ["age", "sex", "bmi"],
        "south": ["bp", "s1", "s2", "s3"],
        "east": ["s4", "s5", "s6"],
    }
    paths = []
    for hospital, columns in owners.items():
        part = X[columns].copy()
        part.insert(0, "row_id", X.index)  # so that a shifted or shuffled file is noticed
        paths.append(folder / f"{hospital}.csv")
        part.to_csv(paths[-1], index=False)
    return paths, y


def main() -> None:
    """Fit, and say what left each hospital."""
    with tempfile.TemporaryDirectory() as folder:
        paths, y = write_parts(Path(folder))
        shards = Shards.files(paths)
        model = Lasso(beta=800.0, cluster=LocalCluster(nodes=3), solver=Solver(tol=1e-6))
        model.fit(shards, y)
        print(
            f"R^2 {model.score(shards, y):.3f}, certified within a relative gap of "
            f"{model.result_.relative_gap:.1e}"
        )
        for one in model.result_.ledger.told:
            print(f"{one.when}: everybody was told {one.name} ({one.values} values)")
        for one in model.result_.ledger.disclosures:
            print(f"{one.when}: {one.party:>5} sent column {one.name!r} ({one.values} values)")
        kept = set(shards.names) - {one.name for one in model.result_.ledger.disclosures}
        print("never left their hospital:", ", ".join(sorted(kept)) or "none")


if __name__ == "__main__":
    main()
