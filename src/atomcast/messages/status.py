"""Why a run ends: what processes vote on."""

from __future__ import annotations

from typing import Literal

Status = Literal["optimal", "max_rounds", "stopped", "time_limit", "interrupted", "reached"]
