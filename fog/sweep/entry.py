"""The state of a sweep: one entry for each run, and what they add up to."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from fog.records.statuses import SETTLED
from fog.sweep import progress
from fog.sweep.job import Job
from fog.sweep.progress import Progress

State = Literal[
    "waiting", "queued", "running", "busy", "interrupted", "finished", "diverged", "failed"
]
"""`queued`: submitted to an engine, not started. `busy`: another process is writing it."""


@dataclass
class Entry:
    """One run as the sweep sees it."""

    job: Job
    state: State = "waiting"
    reason: str = ""
    """Why it failed, or why it is started again."""
    progress: Progress = field(default_factory=Progress)
    checkpoint_step: int = 0
    """Its newest checkpoint when it was last started."""
    begun: bool = False
    """Whether there was something to resume when it was last started."""
    grace: bool = True
    """Whether a death by a signal is still forgiven without a new checkpoint."""
    _seen: float = field(default_factory=time.monotonic)

    def refresh(self) -> None:
        """Read the run's progress from its directory."""
        found = progress.read(self.job.directory)
        if found.env_step != self.progress.env_step:
            self._seen = time.monotonic()
        self.progress = found

    @property
    def share(self) -> float:
        """How much of the run is made, from 0 to 1."""
        if self.state in SETTLED:
            return 1.0
        # An update of priming takes as long as one of training.
        config, made = self.job.config, self.progress
        dose = config.lifecycle.priming_updates
        primed = made.primed if made.env_step < config.run.warmup_steps else dose
        steps, ratio = config.run.steps, config.agent.replay_ratio
        return min(1.0, (made.env_step + primed / ratio) / (steps + dose / ratio))

    @property
    def seconds_left(self) -> float | None:
        """How long it will still take at its present speed; None while that is unknown."""
        rate, config = self.progress.steps_per_second, self.job.config
        # The row that ends a priming holds the time that it took, which no step will take again.
        priming = config.lifecycle.priming_updates and (
            self.progress.env_step <= config.run.warmup_steps
        )
        if self.state != "running" or not rate or priming:
            return None
        left = (self.job.config.run.steps - self.progress.env_step) / rate
        return max(0.0, left - (time.monotonic() - self._seen))


class Tally:
    """What the entries of a sweep add up to."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self._began = time.monotonic()
        self._whole = sum(entry.job.weight for entry in entries) or 1.0
        self._first = self._made()

    def _made(self) -> float:
        return sum(entry.share * entry.job.weight for entry in self.entries)

    def counts(self) -> Counter[State]:
        """Runs in each state."""
        return Counter(entry.state for entry in self.entries)

    @property
    def share(self) -> float:
        """How much of all work is made, from 0 to 1."""
        return self._made() / self._whole

    @property
    def seconds(self) -> float:
        """Since the sweep began."""
        return time.monotonic() - self._began

    @property
    def seconds_left(self) -> float | None:
        """Until the last run ends, at the pace since the sweep began; None while unknown."""
        made = self._made() - self._first
        if made <= 0:
            return None
        left = self.seconds * (self._whole - self._made()) / made
        # The last runs do not go faster because cores are free.
        return max([left, *(entry.seconds_left or 0.0 for entry in self.entries)])
