"""What are pictures made of? A dictionary of patches, its elements spread over six nodes.

Patches of 8 x 8 pixels of a photograph are coded by four elements each, and the elements are
improved between codings. Elements that no patch needs never leave their node.

    python examples/dictionary_patches.py [picture.png]

With matplotlib, the elements are drawn to the file that is named, or else in letters.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d

from atomcast import DictionaryLearning

SHADES = " .:-=+*#%@"


def patches(count: int) -> np.ndarray:
    """Grey patches of a photograph, without their mean."""
    picture = load_sample_image("china.jpg").mean(axis=2) / 255.0
    chosen = extract_patches_2d(picture, (8, 8), max_patches=count, random_state=0)
    flat = chosen.reshape(count, -1)
    return flat - flat.mean(axis=1, keepdims=True)


def in_letters(elements: np.ndarray) -> str:
    """A few elements side by side, in shades of letters."""
    span = np.abs(elements).max(axis=1, keepdims=True)
    shade = ((elements / span + 1) / 2 * (len(SHADES) - 1)).round().astype(int)
    lines = shade.reshape(-1, 8, 8).transpose(1, 0, 2)
    rows = (["".join(SHADES[k] for k in one) for one in line] for line in lines)
    return "\n".join("    " + "   ".join(row) for row in rows)


def draw(elements: np.ndarray, path: str) -> None:
    """All elements in a grid of pictures."""
    from atomcast.plots.drawing import new_figure

    figure = new_figure(5.0, 5.0)
    side = int(np.ceil(np.sqrt(len(elements))))
    for ax, element in zip(figure.subplots(side, side).flat, elements, strict=False):
        ax.imshow(element.reshape(8, 8), cmap="gray")
    for ax in figure.axes:
        ax.set_axis_off()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Learn a dictionary, say what was sent, and show what it looks like."""
    X = patches(2000)
    model = DictionaryLearning(100, n_nonzero=4, max_iter=12, cluster=6).fit(X)
    ledger = model.result_.ledger
    left = np.sqrt(model.error_ / np.sum(X**2))
    print(f"{len(X)} patches, 100 elements on 6 nodes, 4 elements a patch")
    print(f"error: {left[0]:.1%} at the start, {left[-1]:.1%} after {model.n_iter_} codings")
    print(f"sent: {ledger.values:,} values in all, {ledger.atoms_sent:,} elements")
    encoded = model.encode(X[:500])
    each = encoded.result.ledger.values / 500
    print(f"500 patches over the learned dictionary: {each:.0f} values a patch, for all 6 nodes")
    order = np.argsort(-np.bincount(encoded.codes.indices, minlength=100))
    print("the elements that are used most:")
    print(in_letters(model.components_[order[:6]]))
    if len(sys.argv) > 1:
        draw(model.components_[order], sys.argv[1])


if __name__ == "__main__":
    main()
