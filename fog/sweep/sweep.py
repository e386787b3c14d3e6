"""The sweep itself: which runs are started, resumed, retried or left alone, to the end of all."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Protocol

from fog.records.run_directory import BusyError
from fog.records.statuses import SETTLED
from fog.sweep.checks import existing
from fog.sweep.engine import Ended, Engine
from fog.sweep.entry import Entry, State, Tally
from fog.sweep.job import Job, JobStatus
from fog.sweep.progress import last_line
from fog.system.interrupts import StopRequest

POLL_SECONDS = 0.2
BUSY_SECONDS = 1.0
"""Between looks at runs that another process is writing."""
_FULL_DISK = 1 << 20
"""Free bytes below which a disk counts as full."""
_RESULTS: dict[int, State] = {0: "finished", 3: "diverged"}
"""Exit codes of `fog train` that are results."""


class View(Protocol):
    """Where a sweep reports its progress."""

    def changed(self, entry: Entry) -> None:
        """A run changed its state."""

    def tick(self, tally: Tally) -> None:
        """Time has passed; entries of running runs are fresh."""

    def say(self, line: str) -> None:
        """A message that is not about one run."""

    def close(self) -> None:
        """Leave the terminal tidy."""


@dataclass(frozen=True)
class Outcome:
    """How a sweep ended."""

    tally: Tally
    interrupted: bool
    disk_full: bool
    detached: bool = False
    """Whether the runs continue without the sweep."""

    @property
    def exit_code(self) -> int:
        """0 if every run has a result or is on its way, 130 if interrupted before, 1 otherwise."""
        well = {*SETTLED, "queued", "running"} if self.detached else SETTLED
        if all(entry.state in well for entry in self.tally.entries):
            return 0
        return 130 if self.interrupted else 1


class _Stop(StopRequest):
    """The first Ctrl-C stops and the second kills; only the third interrupts this program itself.

    An exception in the middle of an engine's work could lose the end of a run.
    """

    urgent = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT and not self.urgent:
            self.urgent = True
        else:
            super()._handle(number, frame)


class Sweep:
    """Takes runs to their end on an engine. It holds no state that the run directories lack."""

    def __init__(
        self, jobs: Sequence[Job], engine: Engine, view: View, *, patience: float = 120.0
    ) -> None:
        """Look at every run.

        Args:
            jobs: the runs, in starting order.
            engine: starts them.
            view: shows what happens.
            patience: seconds to wait, when nothing else is left to do, for runs that another
                process is writing. The runs of a killed sweep need a moment to save.
        """
        self._engine = engine
        self._view = view
        self._patience = patience
        self.entries = [Entry(job) for job in jobs]
        self._submitted: dict[Job, Entry] = {}
        self._disk_full = False
        self._detached = bool(getattr(engine, "detached", False))
        self._looked = self._shown = float("-inf")
        for entry in self.entries:
            status = entry.job.status()
            ours = entry.job.conflict() is None
            if status == "busy" or (ours and (status == "finished" or status == "diverged")):
                entry.state = status
            if status != "new":
                entry.refresh()
        self.tally = Tally(self.entries)

    def run(self) -> Outcome:
        """Run until every run has ended or Ctrl-C, and return the outcome."""
        with _Stop() as stop:
            try:
                self._until_done(stop)
                if stop.requested:
                    self._halt(stop)
                self._view.tick(self.tally)
            except BaseException:
                self._engine.stop()
                raise
            finally:
                self._view.close()
                self._engine.close()
        return Outcome(self.tally, stop.requested, self._disk_full, self._detached)

    def _until_done(self, stop: _Stop) -> None:
        idle_since: float | None = None
        while not stop.requested:
            self._look_at_busy()
            self._start()
            self._collect()
            self._show()
            if self._detached:
                return
            waiting = [entry for entry in self.entries if entry.state == "waiting"]
            if self._submitted or (waiting and not self._disk_full):
                idle_since = None
            else:
                busy = [entry for entry in self.entries if entry.state == "busy"]
                now = time.monotonic()
                if not busy or (idle_since and now - idle_since > self._patience):
                    return
                if idle_since is None:
                    idle_since = now
                    self._view.say(
                        f"{_runs(len(busy))} being written by another process: "
                        f"waiting up to {self._patience:.0f} s for it"
                    )
            time.sleep(POLL_SECONDS)

    # Starting

    def _start(self) -> None:
        if self._disk_full:
            return
        slots = self._engine.slots
        room = len(self.entries) if slots is None else slots - len(self._submitted)
        batch: list[Job] = []
        for entry in self.entries:
            if len(batch) >= room:
                break
            # Another sweep may have taken it since the last look.
            if entry.state != "waiting" or self._taken(entry, entry.job.status()):
                continue
            entry.checkpoint_step = entry.job.checkpoint_step()
            entry.begun = entry.job.begun()
            entry.state, entry.reason = "queued", ""
            self._submitted[entry.job] = entry
            batch.append(entry.job)
        if batch:
            self._engine.submit(batch)

    def _taken(self, entry: Entry, status: JobStatus) -> bool:
        """Whether there is nothing to do for us: the run is done, or in other hands.

        Another sweep may also have put a run with other settings there since ours began.
        """
        if status == "busy":
            self._become(entry, "busy")
        elif conflict := entry.job.conflict():
            entry.reason = conflict
            self._become(entry, "failed")
        elif status == "finished" or status == "diverged":
            self._become(entry, status)
        else:
            return False
        return True

    def _look_at_busy(self) -> None:
        if time.monotonic() - self._looked < BUSY_SECONDS:
            return
        self._looked = time.monotonic()
        for entry in self.entries:
            status = entry.job.status() if entry.state == "busy" else "busy"
            if status != "busy" and not self._taken(entry, status):
                self._become(entry, "waiting")

    # Ending

    def _collect(self) -> None:
        for ended in self._engine.poll():
            self._settle(ended)
        running = self._engine.running()
        for job, entry in self._submitted.items():
            if entry.state == "queued" and job in running:
                self._become(entry, "running")

    def _settle(self, ended: Ended) -> None:
        entry = self._submitted.pop(ended.job)
        entry.refresh()
        if ended.code in _RESULTS:
            self._become(entry, _RESULTS[ended.code])
        # Another process may have been faster: ours found the lock held, or the run finished.
        elif not self._taken(entry, ended.job.status()):
            self._failed(entry, ended)

    def _failed(self, entry: Entry, ended: Ended) -> None:
        entry.reason = ended.reason or explain(ended)
        free = shutil.disk_usage(existing(ended.job.directory)).free
        if free < _FULL_DISK or os.strerror(errno.ENOSPC) in entry.reason:
            # The next ones would fail as well; those that run may still fit.
            self._disk_full = True
            self._become(entry, "failed")
        elif self._may_retry(entry, ended):
            self._become(entry, "waiting")
        else:
            self._become(entry, "failed")

    def _may_retry(self, entry: Entry, ended: Ended) -> bool:
        """Whether to start a run again that another process had, or that crashed.

        A new checkpoint is progress, so this ends.
        """
        if ended.code == BusyError.exit_code:
            return True
        if ended.code == 2:
            # Refused as new, because another process had begun it and then let it go. One that we
            # had begun ourselves would now be `failed`.
            return not entry.begun and ended.job.status() in ("interrupted", "killed")
        if ended.job.checkpoint_step() > entry.checkpoint_step:
            return True
        forgiven, entry.grace = entry.grace and ended.code < 0, False
        return forgiven

    # Stopping

    def _halt(self, stop: _Stop) -> None:
        """Ask all runs to save, and wait until they have or are killed."""
        if self._submitted:
            self._view.say(
                f"Stopping: {_runs(len(self._submitted))} saving. Ctrl-C again to kill them"
            )
        self._engine.stop()
        killed = False
        while self._submitted:
            if stop.urgent and not killed:
                self._engine.stop(at_once=True)
                killed = True
            for ended in self._engine.poll():
                entry = self._submitted.pop(ended.job)
                entry.refresh()
                self._become(entry, _RESULTS.get(ended.code, "interrupted"))
            self._show()
            time.sleep(POLL_SECONDS if self._submitted else 0.0)

    # Telling

    def _become(self, entry: Entry, state: State) -> None:
        entry.state = state
        self._view.changed(entry)

    def _show(self) -> None:
        running = [entry for entry in self._submitted.values() if entry.state == "running"]
        # Thousands of runs on a shared disk are looked at less often.
        if time.monotonic() - self._shown < 1.0 + 0.02 * len(running):
            return
        self._shown = time.monotonic()
        for entry in running:
            entry.refresh()
        self._view.tick(self.tally)


def explain(ended: Ended) -> str:
    """Why a run failed, in one line: the last line of its log, or the signal that killed it."""
    if ended.code < 0:
        name = signal.Signals(-ended.code).name
        hint = " (out of memory?)" if name == "SIGKILL" else ""
        return f"killed by {name}{hint}"
    said = last_line(ended.job.log).removeprefix("fog: ")
    return said or f"exit code {ended.code}, nothing in {ended.job.log}"


def _runs(count: int) -> str:
    return f"{count} run is" if count == 1 else f"{count} runs are"
