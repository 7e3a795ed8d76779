"""The page on parts of one's own: its code runs, and each part of it is short."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_code_of_the_page_runs():
    everything = {"__name__": "extending"}
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), everything)
    assert {"Huber", "NonnegativeBall", "StandardisedAtoms", "OpenLoop"} <= set(everything)


def test_each_part_takes_less_than_forty_lines():
    assert len(BLOCKS) >= 4
    for block in BLOCKS:
        code = [line for line in block.splitlines() if line.strip()]
        assert len(code) < 40, block
