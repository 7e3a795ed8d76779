"""The files of the data sets: names, check-sums and where their original homes are.

Check-sums are of the unpacked content, because one and the same file is packed here and not
there, and every gzip writes other bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_STATLEARN = "https://hastie.su.domains/ElemStatLearn/datasets"


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    Attributes
    ----------
    name : str
        Its name in the data folder; a file whose name lacks the final .gz is accepted as well.
    sha256 : str
        Of the unpacked content, with exactly one line break at its end.
    url : str
        Where it is published (packed or not).
    """

    name: str
    sha256: str
    url: str


FILES: dict[str, tuple[DataFile, ...]] = {
    "a9a": (
        DataFile(
            "a9a.gz",
            "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
            f"{_LIBSVM}/a9a",
        ),
        DataFile(
            "a9a.t.gz",
            "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
            f"{_LIBSVM}/a9a.t",
        ),
    ),
    "dorothea": (
        DataFile(
            "dorothea_train.data.gz",
            "81623c6d3cbf7047332049c5400cdceafd57bb97ce0055f3bf6d502b68aed4b0",
            f"{_UCI}/dorothea/DOROTHEA/dorothea_train.data",
        ),
        DataFile(
            "dorothea_train.labels",
            "bd6e76671eea59e152cf8dbce1046b8e7ec745561c1dcd02218d8740e23b7c4e",
            f"{_UCI}/dorothea/DOROTHEA/dorothea_train.labels",
        ),
        DataFile(
            "dorothea_valid.data.gz",
            "dfa3bf047974f1e3a2d59aca1c2715b2ce9153806e92709f11e0288311370f02",
            f"{_UCI}/dorothea/DOROTHEA/dorothea_valid.data",
        ),
        DataFile(
            "dorothea_valid.labels",
            "8af3b491a0b1ee57d1ca9fd5d800e22bff4b84d94020892d1919897e726b6db1",
            f"{_UCI}/dorothea/dorothea_valid.labels",
        ),
    ),
    "letter": (
        DataFile(
            "letter-recognition.data.gz",
            "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2",
            f"{_UCI}/letter-recognition/letter-recognition.data",
        ),
    ),
    "usps": (
        DataFile(
            "zip.train.gz",
            "abc9f5c75b997cabe66b5d01727d5a681c69298e1641a8d37b55433a52129dc0",
            f"{_STATLEARN}/zip.train.gz",
        ),
        DataFile(
            "zip.test.gz",
            "6bde17b4f1cd68e0630cd2751d6495b5795d9165ab2dc4a0be8b7002b732f4cc",
            f"{_STATLEARN}/zip.test.gz",
        ),
    ),
}
