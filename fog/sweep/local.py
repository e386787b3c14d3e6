"""The engine that is always there: one process for each run, on this machine."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from fog.errors import UserError
from fog.sweep.engine import LOST, Ended
from fog.sweep.job import Job
from fog.sweep.process import Process


def add_options(parser: argparse.ArgumentParser) -> None:
    """Nothing to ask beyond `--jobs`."""


def make(options: argparse.Namespace, jobs: Sequence[Job]) -> LocalEngine:
    """An engine of `--jobs` processes at once; by default the cores are full, not fought over."""
    return LocalEngine(options.jobs or default_jobs(jobs))


def default_jobs(jobs: Sequence[Job]) -> int:
    """As many runs as there are cores for their threads."""
    threads = max((job.config.runtime.threads for job in jobs), default=1)
    return max(1, cores() // threads)


def cores() -> int:
    """Cores that this process may use, which a container or `taskset` can restrict."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class LocalEngine:
    """Processes of this machine, at most `slots` at once."""

    def __init__(self, slots: int) -> None:
        if slots < 1:
            raise UserError(f"--jobs: at least one run at a time, got {slots}")
        self.slots: int | None = slots
        self._processes: dict[Job, Process] = {}
        self._unstarted: list[Ended] = []
        self._stopping = False

    def submit(self, jobs: Sequence[Job]) -> None:
        """Start each run as a process."""
        for job in jobs:
            try:
                self._processes[job] = Process(job)
            except OSError as error:
                self._unstarted.append(Ended(job, 2, f"cannot be started: {error}"))

    def running(self) -> frozenset[Job]:
        """Runs whose process is alive."""
        return frozenset(self._processes)

    def poll(self) -> list[Ended]:
        """The runs that ended since the last call."""
        ended, self._unstarted = self._unstarted, []
        for job, process in list(self._processes.items()):
            code = process.poll()
            if code is not None:
                del self._processes[job]
                ended.append(Ended(job, self._meaning(code)))
        return ended

    def _meaning(self, code: int) -> int:
        """A run that was asked to stop before it could listen has lost nothing."""
        return 130 if self._stopping and code in (LOST, -15) else code

    def stop(self, *, at_once: bool = False) -> None:
        """Ask every run to save and stop, or kill them."""
        self._stopping = True
        for process in self._processes.values():
            if at_once:
                process.kill()
            else:
                process.stop()

    def close(self) -> None:
        """Nothing is held."""
