"""Probes that look inside a training run, and the analysis of what they recorded.

    runs = diagnostics.load("runs")
    runs.evals.groupby(["task", "variant"])["return"].mean()

Importing this package imports neither torch nor pandas; that happens with the first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diagnostics.runs.load import Runs as Runs
    from diagnostics.runs.load import load as load

__all__ = ["Runs", "load"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from diagnostics.runs import load as runs

        return getattr(runs, name)
    raise AttributeError(f"module 'diagnostics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
