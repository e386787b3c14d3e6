"""Device and compilation: what a config's `auto` means on this machine."""

from __future__ import annotations

import ctypes
import os
import shutil

import torch

from fog.algorithms.families import FAMILIES
from fog.errors import UserError
from fog.settings.config import Config
from fog.training.schedule import UpdateSchedule

COMPILE_PAYS_AFTER = 20_000
"""Updates per depth from which compiling (15 to 80 s for each depth) saves time on one core."""


def device_of(config: Config) -> torch.device:
    """The device that the config asks for.

    Raises:
        UserError: the config asks for a GPU and there is none.
    """
    wanted = config.runtime.device
    if wanted == "cuda" and not torch.cuda.is_available():
        raise UserError("device: no CUDA device here; use cpu or auto")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(wanted)


def compiles(config: Config, device: torch.device) -> bool:
    """Whether updates are compiled: with `auto` if the run is long enough to pay for it.

    Raises:
        UserError: the config asks for compiling, which cannot work here.
    """
    wanted = config.runtime.compile
    if wanted == "off":
        return False
    if not FAMILIES[config.agent.backbone].COMPILES:
        if wanted == "on":
            raise UserError(
                f"compile: an update of {config.agent.backbone} depends on how many there were and "
                "cannot be compiled; use auto"
            )
        return False
    obstacle = compile_obstacle(device)
    if wanted == "on":
        if obstacle:
            raise UserError(f"compile: {obstacle}, or set it to off")
        return True
    total = UpdateSchedule.from_config(config).total
    depths = 1 + config.network.maximal_depth - config.network.initial_depth
    return not obstacle and total(config.run.steps) >= COMPILE_PAYS_AFTER * depths


def compile_obstacle(device: torch.device) -> str | None:
    """Why updates cannot be compiled for `device` on this machine, and the fix; None if they can.

    torch's compiler does not quote the path of its own libraries when it calls the linker.
    """
    compiler = os.environ.get("CXX", "g++")
    if device.type != "cuda" and shutil.which(compiler) is None:
        return f"needs the C++ compiler {compiler}; install it"
    if any(character.isspace() for character in torch.__file__):
        return "torch cannot compile from a path with a space in it; install it elsewhere"
    return None


def prepare(threads: int) -> None:
    """Set up this process for training: its threads, and its memory."""
    torch.set_num_threads(threads)
    keep_memory()


def keep_memory() -> None:
    """Ask the C library to keep freed memory for the next update.

    By default glibc hands every freed block of some hundred kilobytes back to the system, and each
    update pays again for having its pages mapped and cleared: at width 512 several times what an
    elementwise operation costs (docs/performance.md). Elsewhere than glibc it does nothing.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    for option, value in _MALLOPT.values():
        mallopt(option, value)


_MALLOPT = {
    "trim_threshold": (-1, 1 << 30),
    "top_pad": (-2, 1 << 26),
    "mmap_threshold": (-3, 1 << 25),
}
"""Numbers of glibc's malloc.h, and the bytes we ask for; 32 MB is the most it takes."""
