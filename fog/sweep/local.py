"""The engine that is always there: one process for each run, on this machine."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence

from fog.errors import UserError
from fog.sweep import gpus
from fog.sweep.engine import LOST, Ended
from fog.sweep.job import Job
from fog.sweep.process import Process


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which GPUs to spread the runs over."""
    parser.add_argument_group("local").add_argument(
        "--gpus",
        metavar="LIST",
        help="GPUs to spread the runs over: a count, or a list such as 0,1 [no choice is made]",
    )


def make(options: argparse.Namespace, jobs: Sequence[Job]) -> LocalEngine:
    """An engine of `--jobs` processes at once.

    Raises:
        UserError: a GPU is not there, or would not be used.
    """
    found = _gpus(options, jobs)
    return LocalEngine(at_once(options, jobs, found), found)


def at_once(
    options: argparse.Namespace, jobs: Sequence[Job], found: tuple[str, ...] | None = None
) -> int:
    """How many runs at a time: by default one for each of `--gpus`, or what the cores allow."""
    if options.jobs:
        return int(options.jobs)
    return len(_gpus(options, jobs) if found is None else found) or default_jobs(jobs)


def _gpus(options: argparse.Namespace, jobs: Sequence[Job]) -> tuple[str, ...]:
    """The GPUs of `--gpus`, a flag of this engine; none without it."""
    wanted = getattr(options, "gpus", None)
    if wanted is None:
        return ()
    if any(job.config.runtime.device == "cpu" for job in jobs):
        raise UserError("--gpus: these runs have --device cpu; leave one of the two out")
    return gpus.chosen(wanted)


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
    """Processes of this machine, at most `slots` at once, spread over `gpus` if there are any."""

    def __init__(self, slots: int, gpus: tuple[str, ...] = ()) -> None:
        if slots < 1:
            raise UserError(f"--jobs: at least one run at a time, got {slots}")
        self.slots: int | None = slots
        self._gpus = gpus
        self._processes: dict[Job, Process] = {}
        self._unstarted: list[Ended] = []
        self._stopping = False

    def submit(self, jobs: Sequence[Job]) -> None:
        """Start each run as a process."""
        for job in jobs:
            try:
                self._processes[job] = Process(job, self._gpu())
            except OSError as error:
                self._unstarted.append(Ended(job, 2, f"cannot be started: {error}"))

    def _gpu(self) -> str | None:
        if not self._gpus:
            return None
        used = Counter(process.gpu for process in self._processes.values())
        return min(self._gpus, key=lambda name: used[name])  # the first of several

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
