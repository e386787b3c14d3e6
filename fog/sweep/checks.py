"""What can be known before anything starts: a sweep that must fail fails in its first second."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from fog.envs import detect
from fog.errors import UserError
from fog.probing import registry
from fog.records.statuses import SETTLED
from fog.settings import tasks
from fog.sweep.job import Job


def settled(jobs: Sequence[Job]) -> None:
    """Check that the probes exist and that earlier runs in the same places are the same runs.

    Raises:
        UserError: one line that names the first that does not fit.
    """
    for probes in {job.config.run.probes for job in jobs}:
        registry.chosen(probes)
    for job in jobs:
        if conflict := job.conflict():
            raise UserError(conflict)


def writable(jobs: Sequence[Job]) -> None:
    """Check that the run directories can be written, without making them: a check leaves nothing.

    Raises:
        UserError: a folder that cannot be written, and why.
    """
    for out in {job.home / job.config.runtime.out for job in jobs}:
        try:
            with tempfile.NamedTemporaryFile(dir=existing(out)):
                pass
        except OSError as error:
            raise UserError(f"cannot write into {out}: {error.strerror}") from None


def absent_suites(jobs: Sequence[Job]) -> list[str]:
    """What unfinished runs need and this machine lacks, one line for each suite."""
    needed: dict[str, set[str]] = {}
    for job in jobs:
        if job.status() not in SETTLED:
            task = tasks.get(job.config.run.task)
            needed.setdefault(task.suite, set()).add(task.name)
    return [
        f"{len(needed[status.suite])} of the tasks cannot run here: {status.detail}"
        for status in detect.suites()
        if status.suite in needed and not status.available
    ]


def runnable(jobs: Sequence[Job]) -> None:
    """Check that this machine can run the jobs.

    Raises:
        UserError: a suite is not installed, or a run needs a GPU and there is none.
    """
    if lines := absent_suites(jobs):
        raise UserError(lines[0])
    if cuda := [job.config for job in jobs if job.config.runtime.device == "cuda"]:
        # Only then, because it waits for torch.
        from fog.training.device import device_of

        device_of(cuda[0])


def existing(path: Path) -> Path:
    """The path itself or its nearest existing parent, to look up its disk."""
    return next(at for at in (path, *path.parents) if at.exists())
