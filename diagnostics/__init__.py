"""Probes that look inside a training run, and the analysis of what they recorded.

    runs = diagnostics.load("runs")
    runs.evals.groupby(["task", "variant"])["return"].mean()
    diagnostics.diagnose("runs")[0].sentence

Importing this package imports neither torch nor pandas; that happens with the first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diagnostics.diagnosis.verdict import diagnose as diagnose
    from diagnostics.runs.load import Runs as Runs
    from diagnostics.runs.load import load as load

_HOMES = {
    "Runs": "diagnostics.runs.load",
    "diagnose": "diagnostics.diagnosis.verdict",
    "load": "diagnostics.runs.load",
}

__all__ = ["Runs", "diagnose", "load"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'diagnostics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
