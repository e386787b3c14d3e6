"""What a training run reports to its probes: steps, updates, changes, episodes, initial facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Phase = Literal["before", "after"]
ChangeKind = Literal["reset", "expansion"]


@dataclass(frozen=True)
class EnvStep:
    """One transition has been added to the replay, under `id`."""

    id: int
    reward: float
    terminated: bool
    truncated: bool


@dataclass(frozen=True)
class Update:
    """One or several gradient updates have been made.

    `ids` are the transitions drawn, one row for each update; `metrics` are means over the rows.
    """

    ids: NDArray[np.int64]
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Change:
    """The networks are about to be, or have just been, reset or expanded."""

    kind: ChangeKind
    phase: Phase


@dataclass(frozen=True)
class Episode:
    """One complete evaluation episode: transitions that are never trained on.

    `observations` has one row more than `actions`: the last is the final observation.
    """

    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    rewards: NDArray[np.float32]
    terminated: bool


@dataclass(frozen=True)
class Facts:
    """What a probe must know about a run before it starts. Steps are environment steps."""

    seed: int
    steps: int
    """How long the run is going to be."""
    window_steps: int
    """Width of an insertion window: transition i belongs to window i // window_steps."""
    batch_size: int
    discount: float
    capacity: int
    """Transitions that the replay keeps."""
    sampler: str
    """`uniform`, `decay`, or any other name, for which no expectation is known."""
    epsilon: float = 0.0
    """Decay rate of the sampler `decay`."""
    tau: float = 1.0
    """Minimal weight of the sampler `decay`."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Every setting of the run by name, for probes written for this trainer."""
