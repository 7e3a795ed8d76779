"""How long tests wait for what has to happen."""

from __future__ import annotations

import time

#: Seconds until a test says that something hangs. A busy machine is slow and not wrong, so this is
#: far more than anything takes, and only failures ever wait so long.
PATIENCE = 240.0


def wait_until(condition, what):
    """Return once the condition holds; fails, with `what` as the reason, if it never does."""
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit, what
        time.sleep(0.02)
