"""What a run asks of a cluster: CPUs, GPUs, memory."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from fog.errors import UserError
from fog.settings.config import Config
from fog.settings.options import MOST
from fog.system.text import shown

_MARGIN = 1.25
"""Estimated memory is right within a fifth or so, and a scheduler may kill what exceeds it."""


@dataclass(frozen=True)
class Request:
    """For one run."""

    cpus: int
    gpus: float
    memory_bytes: int


def add_options(parser: argparse.ArgumentParser) -> None:
    """The flags that set the resources of a run."""
    group = parser.add_argument_group("resources of each run")
    group.add_argument(
        "--cpus-per-run", type=int, metavar="N", help="CPU cores [the run's --threads]"
    )
    group.add_argument("--gpus-per-run", type=float, default=0.0, metavar="X", help="GPUs [0]")
    group.add_argument(
        "--memory-per-run", type=float, metavar="GB", help="memory [the estimate plus a quarter]"
    )


def request_of(options: argparse.Namespace, config: Config) -> Request:
    """What one run asks for.

    Raises:
        UserError: a flag makes no sense, or the run needs a GPU but does not request one.
    """
    cpus, gpus, memory = options.cpus_per_run, options.gpus_per_run, options.memory_per_run
    for flag, value, least in (("cpus", cpus, 1), ("gpus", gpus, 0), ("memory", memory, 0.01)):
        if value is not None and not least <= value <= MOST:
            raise UserError(f"--{flag}-per-run: must be at least {least:g}, got {shown(value)}")
    if config.runtime.device == "cuda" and not gpus:
        raise UserError("--device cuda needs a GPU for each run: add --gpus-per-run 1")
    if memory is None:
        from fog.cost import estimate

        needed = estimate([config], calibrate=False).per_run[0].memory_bytes * _MARGIN
    else:
        needed = memory * 1e9
    return Request(cpus or config.runtime.threads, gpus, round(needed))
