"""Three clinics describe the same patients, each by a view of its own; two of the views matter.

Every clinic keeps its view, and offers kernels of several widths on it. Of a kernel that the model
needs, a number for each patient is broadcast in a round, and nothing else of the view.

    python examples/multiple_kernels.py
"""

from __future__ import annotations

import numpy as np

from atomcast import MultipleKernelClassifier, Shards

CLINICS = {"laboratory": 4, "imaging": 6, "survey": 5}


def make_patients(rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Patients who are ill where a curve of laboratory values and a trend of images meet."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, sum(CLINICS.values())))
    laboratory, imaging = X[:, 0] * X[:, 1], X[:, 4] + 0.5 * X[:, 5]
    return X, laboratory + imaging + 0.3 * rng.standard_normal(rows) > 0.0


def main() -> None:
    """Fit on 300 patients, and predict the others."""
    X, ill = make_patients()

    def held(rows: slice) -> Shards:
        return Shards.split(
            X[rows], len(CLINICS), by=list(CLINICS.values()), party_names=list(CLINICS)
        )

    model = MultipleKernelClassifier(C=1.0).fit(held(slice(300)), ill[:300])
    result, new = model.result_, held(slice(300, None))
    print(f"{result.status}, relative gap {result.relative_gap:.1e}, {result.rounds} rounds")
    print(f"C = {model.C_:g} goes with a radius of {model.beta_:.3g}")
    for name, weight in zip(model.kernel_names_, model.kernel_weights_, strict=True):
        if weight > 0.01:
            print(f"  {weight:4.2f}  {name}")
    print(f"accuracy on 100 new patients, each clinic its part: {model.score(new, ill[300:]):.2f}")
    for name, count in zip(CLINICS, CLINICS.values(), strict=True):
        sent = [entry for entry in result.ledger.disclosures if entry.who == name]
        values = sum(entry.values for entry in sent)
        print(
            f"  {name}: {len(sent)} directions, {values:,} values, of {300 * count:,} in its view"
        )


if __name__ == "__main__":
    main()
