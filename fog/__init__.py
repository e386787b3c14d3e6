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
    from fog.errors import UserError as UserError
    from fog.settings.config import Config as Config
    from fog.settings.variants import resolve as resolve
    from fog.training.loading import load_agent as load_agent
    from fog.training.run import Run as Run
    from fog.training.run import train as train

__version__ = "0.1.0"

_HOMES = {
    "Config": "fog.settings.config",
    "Run": "fog.training.run",
    "UserError": "fog.errors",
    "load_agent": "fog.training.loading",
    "resolve": "fog.settings.variants",
    "train": "fog.training.run",
}
__all__ = ["Config", "Run", "UserError", "__version__", "load_agent", "resolve", "train"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'fog' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
