"""A probe, and the view that it is called with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from fog.events.cost import Outline, ProbeCost
from fog.events.events import Change, EnvStep, Episode, Facts, Update
from fog.events.observed import Memory, ObservedAgent


class Table(Protocol):
    """Where a probe records: columns of equal length, stamped with the environment step."""

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows."""


class View(Protocol):
    """What a probe may look at."""

    @property
    def facts(self) -> Facts:
        """What is known about the run before it starts."""

    @property
    def env_step(self) -> int:
        """Environment steps so far."""

    @property
    def updates(self) -> int:
        """Gradient updates so far, over all resets."""

    @property
    def agent(self) -> ObservedAgent:
        """Networks and losses, for reading."""

    @property
    def replay(self) -> Memory:
        """Stored transitions and draw counts, for reading."""

    @property
    def rng(self) -> np.random.Generator:
        """The probe's own random stream, kept in checkpoints."""

    def table(self, name: str) -> Table:
        """The probe's table of that name, made on first use."""


class Probe:
    """Base of every probe: each hook does nothing, and costs nothing unless overridden.

    Keyword arguments of the constructor are the probe's options: `--probes name:option=value`.
    """

    name: str

    def cost(self, run: Outline) -> ProbeCost:
        """What the probe, with its options, will take in such a run.

        Used by estimates. A probe that does not override it counts as nothing, and the estimate
        names it.
        """
        return ProbeCost()

    def on_start(self, view: View) -> None:
        """Training is about to start or to resume; a ValueError says what the probe lacks."""

    def on_env_step(self, view: View, event: EnvStep) -> None:
        """A transition was added."""

    def on_update(self, view: View, event: Update) -> None:
        """Updates were made."""

    def on_change(self, view: View, event: Change) -> None:
        """Networks are about to change, or have changed: called twice for each change."""

    def on_evaluation(self, view: View, episodes: list[Episode]) -> None:
        """An evaluation ended."""

    def on_window(self, view: View) -> None:
        """A window of `facts.window_steps` ended; a reset on this step comes afterwards."""

    def on_end(self, view: View) -> None:
        """Training is over."""

    def state(self) -> dict[str, Any]:
        """What the probe must remember across a resume: plain data and numpy arrays."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
