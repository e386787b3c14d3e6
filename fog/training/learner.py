"""What changes the networks of a run: updates, the dose of priming, expansions, resets."""

from __future__ import annotations

from collections.abc import Callable

from fog.agent import Agent
from fog.events import Change, ChangeKind, Update
from fog.probing.dispatch import Counters, Probes
from fog.replay import Replay
from fog.settings.config import Config
from fog.system.interrupts import StopRequest
from fog.training.console import Reporter
from fog.training.recorder import MeanMetrics
from fog.training.schedule import PORTION, UpdateSchedule, priming_detail


class DivergedError(Exception):
    """A non-finite value appeared. Something to study, so it ends the run and not the program."""


class Learner:
    """Makes the updates due at an environment step, and tells probes about every change."""

    def __init__(
        self,
        config: Config,
        agent: Agent,
        replay: Replay,
        probes: Probes,
        progress: Counters,
        event: Callable[[str, str], None],
        report: Reporter,
    ) -> None:
        """Connect the parts of a run.

        The count of updates in `progress` is advanced here. `event` records a change, with a
        detail, in events.csv; `report` is called with the progress of priming.
        """
        self._config = config
        self._agent = agent
        self._replay = replay
        self._probes = probes
        self._progress = progress
        self._event = event
        self._report = report
        self.schedule = UpdateSchedule.from_config(config)
        self.metrics = MeanMetrics()

    def due(self) -> int:
        """Updates still due for the last environment step; none after a complete step."""
        return self.schedule.total(self._progress.env_step) - self._agent.total_updates

    def update(self, stop: StopRequest) -> None:
        """Make the updates that are due, portion by portion.

        The next portion follows from the counters alone, so a run that is stopped and saved between
        two portions resumes bit for bit.
        """
        due, primes = self.due(), self.schedule.primes(self._progress.env_step)
        if primes and self._agent.total_updates == 0:
            self._event("priming", priming_detail(self._config))
        while due > 0:
            self.expand_if_due()
            self._make(min(due, PORTION))
            due = self.due()
            if primes:
                made = self._agent.total_updates
                self._report.prime(made, made + due)
            if stop.requested:
                return

    def _make(self, most: int) -> None:
        # With feedback, each draw must see the priorities that the update before it set.
        several = 1 if self._replay.sampler.feedback else most
        room = self._agent.updates_until_change()
        count = several if room is None else min(several, room)
        batch, ids = self._replay.sample(self._config.agent.batch_size, count)
        stats = self._agent.update(batch)
        if not stats.finite:
            raise DivergedError("a loss, target or parameter is no longer finite")
        if self._replay.sampler.feedback:
            # Only then, because fetching the errors waits for the device.
            self._replay.update_priorities(ids, stats.td_error)
        self._progress.updates = self._agent.total_updates
        self.metrics.add(stats.metrics, count)
        self._probes.update(Update(ids, stats.metrics))

    def expand_if_due(self) -> None:
        """Let the critics grow if they have made the updates for it."""
        if self._agent.expansion_due():
            self._change("expansion", self._agent.expand)

    def reset(self) -> None:
        """Re-initialise everything learnable."""
        self._change("reset", self._agent.reset)

    def _change(self, kind: ChangeKind, apply: Callable[[], None]) -> None:
        self._probes.change(Change(kind, "before"))
        apply()
        self._probes.change(Change(kind, "after"))
        self._event(kind, "")
