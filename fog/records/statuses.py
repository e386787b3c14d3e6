"""What a run's manifest may say of it."""

from __future__ import annotations

from typing import Literal

Status = Literal["running", "interrupted", "finished", "diverged", "failed"]

SETTLED = frozenset({"finished", "diverged"})
"""Runs that have come to their end: nothing is left to resume."""
