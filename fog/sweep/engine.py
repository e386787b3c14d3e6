"""What starts the runs: the contract between a sweep and an engine.

The sweep decides what runs (order, resuming, retrying); an engine only starts runs and says how
they ended. An engine is a module `fog.sweep.<name>` with `add_options` and `make`; it imports its
own package (Ray, submitit) inside `make`, because the options are shown without it.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from fog.errors import UserError
from fog.settings.options import unknown
from fog.sweep.job import Job
from fog.system.extras import install

ENGINES = ("local", "ray", "slurm")

LOST = -9
"""Exit code of a run whose process vanished without one: the node died, or the memory ran out."""


@dataclass(frozen=True)
class Ended:
    """A run whose process has ended."""

    job: Job
    code: int
    """Exit code of `fog train` (see docs/runs.md), negative for a signal."""
    reason: str = ""
    """What the engine knows beyond the run's own log, in one line; empty if nothing."""


class Engine(Protocol):
    """Starts runs and says how they ended. All methods are called from one thread.

    An engine may have an attribute `detached`: if true, the sweep ends as soon as all is submitted.
    """

    slots: int | None
    """Runs that may be submitted at once; None hands over all of them and the engine queues."""

    def submit(self, jobs: Sequence[Job]) -> None:
        """Start or queue runs, and return at once.

        One that cannot be started is reported by `poll` as ended. A run that ended badly may be
        submitted again: `fog.sweep.process.start` resumes it from its checkpoint.
        """

    def running(self) -> frozenset[Job]:
        """Submitted runs that have started and not ended; the others are queued."""

    def poll(self) -> list[Ended]:
        """The runs that ended since the last call. Never blocks."""

    def stop(self, *, at_once: bool = False) -> None:
        """Ask every submitted run to save and stop, or kill it if `at_once`; returns at once.

        Queued ones are dropped. `poll` reports them all, with 130 where nothing went wrong.
        """

    def close(self) -> None:
        """Free what the engine holds. Runs that are still open have been asked to stop."""


class EngineModule(Protocol):
    """What `fog.sweep.<name>` holds."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the engine's own flags; `--jobs` is common to all."""

    def make(self, options: argparse.Namespace, jobs: Sequence[Job]) -> Engine:
        """The engine for these runs.

        Raises:
            UserError: its package is missing, or the options do not fit.
        """


def load(name: str) -> EngineModule:
    """The engine of that name.

    Raises:
        UserError: the engine does not exist.
    """
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    try:
        return cast(EngineModule, importlib.import_module(f"fog.sweep.{name}"))
    except ImportError as error:
        raise UserError(f"engine {name} cannot be loaded: {error}") from None


def missing(engine: str, package: str) -> UserError:
    """The error for an engine whose package is not installed."""
    return UserError(f"engine {engine} needs {package}: {install(engine)}, or use --engine local")
