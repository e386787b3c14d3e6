"""FoG: forget and grow, its ablations, and the SAC family it starts from.

    config = fog.resolve("cartpole-swingup", "fog", scale=0.02)
    run = fog.train(config)
    agent = fog.load_agent(run.directory)

Importing this package imports no torch; that happens with the first name that needs it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fog.config import Config as Config
    from fog.errors import UserError as UserError
    from fog.loading import load_agent as load_agent
    from fog.training import Run as Run
    from fog.training import train as train
    from fog.variants import resolve as resolve

__version__ = "0.1.0"

_HOMES = {
    "Config": "fog.config",
    "Run": "fog.training",
    "UserError": "fog.errors",
    "load_agent": "fog.loading",
    "resolve": "fog.variants",
    "train": "fog.training",
}
__all__ = ["Config", "Run", "UserError", "__version__", "load_agent", "resolve", "train"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'fog' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
