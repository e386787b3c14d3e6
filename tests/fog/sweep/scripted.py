"""An engine that trains nothing: each start of a run ends as its script says."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from fog.records.run_directory import RunDirectory
from fog.sweep.engine import Ended
from fog.sweep.entry import Entry, Tally
from fog.sweep.job import Job
from tests.training import TINY

Act = Callable[[Job], int]
"""What one start of a run does to its directory, and its exit code."""


def jobs_in(out: Path, count: int) -> list[Job]:
    settings = {**TINY, "out": str(out)}
    return [Job.of("gym:Pendulum-v1", "sac", seed, 1.0, settings) for seed in range(count)]


def begin(job: Job, status: str = "running", checkpoint: int = 0, log: str = "") -> None:
    """Leave a directory as a run would that came so far."""
    enter = RunDirectory.reopen if job.begun() else RunDirectory.create
    directory = enter(job.config)
    directory.update_manifest(status=status, env_step=checkpoint)
    if checkpoint:
        (directory.checkpoint_path / f"{checkpoint:012d}").mkdir(parents=True)
    if log:
        job.log.write_text(log)
    directory.unlock()


def finish(job: Job) -> int:
    begin(job, "finished")
    return 0


def diverge(job: Job) -> int:
    begin(job, "diverged")
    return 3


def crash(code: int, checkpoint: int = 0, log: str = "") -> Act:
    def act(job: Job) -> int:
        begin(job, "failed", checkpoint, log)
        return code

    return act


def interrupt_us(job: Job) -> int:
    """Ctrl-C while this run is being made; it saves."""
    os.kill(os.getpid(), signal.SIGINT)
    begin(job, "interrupted", 70)
    return 130


class Scripted:
    """Runs end one at a time; `script` holds what each start of a seed does, `finish` if unsaid."""

    def __init__(self, script: dict[int, list[Act]], slots: int | None = 2) -> None:
        self.slots = slots
        self.script = script
        self.submitted: list[list[int]] = []
        self.most_at_once = 0
        self.stopped: list[bool] = []
        self.closed = False
        self._open: list[Job] = []

    def submit(self, jobs: Sequence[Job]) -> None:
        self.submitted.append([job.config.run.seed for job in jobs])
        self._open += jobs
        self.most_at_once = max(self.most_at_once, len(self._open))

    def running(self) -> frozenset[Job]:
        return frozenset(self._open)

    def poll(self) -> list[Ended]:
        if not self._open:
            return []
        job = self._open.pop(0)
        acts = self.script.get(job.config.run.seed, [])
        act = acts.pop(0) if acts else finish
        return [Ended(job, act(job))]

    def stop(self, *, at_once: bool = False) -> None:
        self.stopped.append(at_once)

    def close(self) -> None:
        assert not self._open
        self.closed = True


class Heard:
    """A view that remembers."""

    def __init__(self) -> None:
        self.changes: list[tuple[int, str]] = []
        self.lines: list[str] = []

    def changed(self, entry: Entry) -> None:
        self.changes.append((entry.job.config.run.seed, entry.state))

    def tick(self, tally: Tally) -> None:
        pass

    def say(self, line: str) -> None:
        self.lines.append(line)

    def close(self) -> None:
        pass
