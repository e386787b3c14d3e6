"""Device and compilation: what a config's `auto` means on this machine."""

from __future__ import annotations

import shutil

import torch

from fog.config import Config
from fog.errors import UserError
from fog.schedule import UpdateSchedule

COMPILE_PAYS_AFTER = 20_000
"""Updates per depth from which compiling (about a minute for each depth) saves time on one core."""


def device_of(config: Config) -> torch.device:
    """The device that the config asks for.

    Raises:
        UserError: a GPU is asked for and there is none.
    """
    wanted = config.runtime.device
    if wanted == "cuda" and not torch.cuda.is_available():
        raise UserError("device: no CUDA device here; use --device cpu")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(wanted)


def compiles(config: Config, device: torch.device) -> bool:
    """Whether updates are compiled: `auto` says yes when the run is long enough to pay for it."""
    wanted = config.runtime.compile
    has_compiler = device.type == "cuda" or shutil.which("g++") is not None
    if wanted == "on" and not has_compiler:
        raise UserError("compile: needs the C++ compiler g++; install it, or use --compile off")
    if wanted != "auto":
        return wanted == "on"
    total = UpdateSchedule(config.agent.replay_ratio, config.run.warmup_steps).total
    depths = 1 + config.network.maximal_depth - config.network.initial_depth
    return has_compiler and total(config.run.steps) >= COMPILE_PAYS_AFTER * depths
