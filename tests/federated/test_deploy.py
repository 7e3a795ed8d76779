"""The unit for systemd is one that systemd understands, and shuts in what it runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "deploy/federated/atomcast-node.service"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_the_unit_of_a_node_is_sound_and_tight(tmp_path):
    atomcast = Path(sys.executable).with_name("atomcast")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/atomcast/bin/atomcast", str(atomcast)))
    for check in (["verify"], ["security", "--offline=true", "--threshold=25"]):
        command = ["systemd-analyze", *check, str(unit)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "unrecognized option" in done.stderr:
            pytest.skip("this systemd-analyze cannot judge a file")
        assert done.returncode == 0, done.stdout + done.stderr
        assert unit.name not in done.stderr, done.stderr  # no warning about a line of it
