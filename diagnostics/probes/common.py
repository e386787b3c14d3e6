"""What probes share: own noise, own samples of the buffer, a cadence, checked records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diagnostics import schema
from fog.events import Subject, Transitions, View

MEASUREMENTS_PER_WINDOW = 20
"""Cadence of the cheap probes: every 5k steps at the paper's scale, as often as evaluations."""


def record(view: View, table: str, columns: Mapping[str, Any]) -> None:
    """Write rows to a table of `diagnostics.schema`."""
    view.table(table).write(schema.conform(table, columns))


def noise(view: View, rows: int) -> Tensor:
    """Standard normals (rows, act_dim) from the probe's own stream."""
    drawn = view.rng.standard_normal((rows, view.subject.act_dim), dtype=np.float32)
    return torch.from_numpy(drawn).to(view.subject.device)


def sample_ids(view: View, size: int) -> NDArray[np.int64]:
    """`size` different stored transitions, all equally likely; all of them if fewer are stored.

    Uniform whatever the training sampler is, so that variants are measured on the same footing.
    """
    stored = view.replay.size
    oldest = view.replay.added - stored
    if stored <= size:
        return np.arange(oldest, view.replay.added)
    return np.sort(oldest + view.rng.choice(stored, size, replace=False))


def sample(view: View, size: int) -> Transitions:
    """The transitions of `sample_ids`."""
    return view.replay.take(sample_ids(view, size))


def window_ids(view: View, size: int) -> list[tuple[int, NDArray[np.int64]]]:
    """At most `size` stored transitions of every insertion window, oldest first, in order.

    All transitions of a window are equally likely. The first and the last window may hold few.
    """
    width, added = view.facts.window_steps, view.replay.added
    oldest = added - view.replay.size
    found = []
    for window in range(oldest // width, (added - 1) // width + 1):
        start, end = max(oldest, window * width), min(added, (window + 1) * width)
        kept = min(size, end - start)
        found.append((window, start + np.sort(view.rng.choice(end - start, kept, replace=False))))
    return found


def one_update(view: View) -> Subject | None:
    """The agent after one more update, on a batch of training's size that the probe draws.

    The batch is uniform, as every sample of a probe is. None where the subject cannot say.
    """
    batch = sample(view, view.facts.batch_size)
    rows = len(batch.reward)
    shape = (2, rows, view.subject.act_dim)
    drawn = torch.from_numpy(view.rng.standard_normal(shape, dtype=np.float32))
    return view.subject.updated(batch, drawn.to(view.subject.device))


def at_least_one(value: int, name: str) -> int:
    """A probe's setting, checked before training starts."""
    if value < 1:
        raise ValueError(f"{name} must be at least 1")
    return value


class Cadence:
    """Due at the first update, and then in each new stretch of `window / per_window` steps."""

    def __init__(self, per_window: int = MEASUREMENTS_PER_WINDOW) -> None:
        self.per_window = at_least_one(per_window, "per_window")
        self.next = 0
        """Environment step from which the next measurement is due; belongs into the state."""

    def due(self, view: View) -> bool:
        """Whether to measure now; if so, the next time is set."""
        step = view.env_step
        if step < self.next:
            return False
        every = max(1, view.facts.window_steps // self.per_window)
        self.next = (step // every + 1) * every
        return True
