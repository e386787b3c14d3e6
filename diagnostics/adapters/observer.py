"""Calls probes for an agent that our trainer does not train."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fog.events import (
    Change,
    ChangeKind,
    EnvStep,
    Episode,
    Facts,
    Memory,
    ObservedAgent,
    Phase,
    Probe,
    Update,
)
from fog.probing.dispatch import Counters, Probes
from fog.probing.registry import load


class Observer:
    """Attaches probes to a agent and its replay, and tells them what happens.

        observer = Observer(agent, memory, facts, "runs/mine/probes", ["critic_loss"])
        ...
        observer.advance(env_step, updates, drawn_ids)   # as often as suits the training loop

    Tables are those of our own runs, so the same analysis reads them.
    """

    def __init__(
        self,
        agent: ObservedAgent,
        memory: Memory,
        facts: Facts,
        directory: str | Path,
        probes: Sequence[str | Probe] = ("all",),
    ) -> None:
        """Attach.

        Args:
            agent: the agent.
            memory: its replay.
            facts: what probes must know of the run.
            directory: where the tables go.
            probes: names as in `fog train --probes`, or probes of one's own.
        """
        made = [probe for probe in probes if isinstance(probe, Probe)]
        made += load(probe for probe in probes if isinstance(probe, str))
        self.progress = Counters()
        self.probes = Probes(made, facts, self.progress, agent, memory, Path(directory))
        self._memory = memory
        self._facts = facts
        self._window = 0

    def start(self) -> None:
        """Training is about to start."""
        self.probes.start()

    def added(self, event: EnvStep) -> None:
        """A transition was added, the one of environment step `event.id + 1`."""
        self.progress.env_step = event.id + 1
        self.probes.env_step(event)

    def advance(self, env_step: int, updates: int, ids: NDArray[np.int64] | None = None) -> None:
        """Training has come to `env_step` and `updates`.

        Args:
            env_step: environment steps so far.
            updates: gradient updates so far.
            ids: transitions drawn since the last call, one row for each update; None if unknown.
        """
        made = updates - self.progress.updates
        self.progress.env_step, self.progress.updates = env_step, updates
        if made > 0:
            drawn = np.zeros((made, 0), np.int64) if ids is None else ids
            self.probes.update(Update(drawn, {}))
        window = env_step // self._facts.window_steps
        if window > self._window and self._memory.size:
            self._window = window
            self.probes.window()

    def change(self, kind: ChangeKind, phase: Phase) -> None:
        """The networks are about to be ("before"), or have just been ("after"), reset or expanded.

        Probes compare the two sides, so each call with "before" needs one with "after".

        Args:
            kind: "reset" or "expansion".
            phase: "before" or "after".
        """
        self.probes.change(Change(kind, phase))

    def evaluated(self, episodes: list[Episode]) -> None:
        """Evaluation episodes were played."""
        self.probes.evaluation(episodes)

    def end(self) -> None:
        """Training is over; a last window that is not full is measured too."""
        if self.progress.env_step % self._facts.window_steps:
            self.probes.window()
        self.probes.end()
