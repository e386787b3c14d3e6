"""What probes share: own noise, own samples of the buffer, a cadence, checked records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fog.events import ObservedAgent, Probe, TransitionBatch, Transitions, Update, View
from fog.records import schema

MEASUREMENTS_PER_WINDOW = 20
"""Cadence of the cheap probes: every 5k steps at the paper's scale, as often as evaluations."""


def record(view: View, table: str, columns: Mapping[str, Any]) -> None:
    """Write columns to a table of `fog.records.schema`."""
    view.table(table).write(conform(table, columns))


def record_rows(view: View, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows, at least one, to a table of `fog.records.schema`."""
    record(view, table, {name: [row[name] for row in rows] for name in rows[0]})


def conform(name: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns checked against the table `name` and converted to its types, in its order."""
    table = schema.TABLES[name]
    wanted = {column.name for column in table.columns}
    if wanted != set(columns):
        missing, extra = sorted(wanted - set(columns)), sorted(set(columns) - wanted)
        raise ValueError(f"table {name}: missing columns {missing}, unknown columns {extra}")
    return {column.name: _typed(columns[column.name], column.dtype) for column in table.columns}


def _typed(values: Any, dtype: str) -> Any:
    if dtype.startswith("list<"):
        return [np.asarray(row, dtype=dtype[5:-1]) for row in values]
    return np.asarray(values, dtype=str if dtype == "str" else dtype)


def noise(view: View, rows: int) -> Tensor:
    """Standard normals (rows, act_dim) from the probe's own stream."""
    drawn = view.rng.standard_normal((rows, view.agent.act_dim), dtype=np.float32)
    return torch.from_numpy(drawn).to(view.agent.device)


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


def stored_windows(view: View) -> NDArray[np.int64]:
    """Insertion windows with stored transitions, oldest first."""
    added, width = view.replay.added, view.facts.window_steps
    return np.arange((added - view.replay.size) // width, -(-added // width))


def sample_window(view: View, window: int, size: int) -> NDArray[np.int64]:
    """`size` different stored transitions of one insertion window; all of it if it has fewer."""
    added, width = view.replay.added, view.facts.window_steps
    start = max(window * width, added - view.replay.size)
    end = min((window + 1) * width, added)
    if end - start <= size:
        return np.arange(start, end)
    return np.sort(start + view.rng.choice(end - start, size, replace=False))


def rows_of(batch: Transitions, rows: slice | NDArray[np.int64]) -> TransitionBatch:
    """Some rows of a batch."""
    columns = (batch.obs, batch.action, batch.reward, batch.bootstrap, batch.next_obs)
    return TransitionBatch(*(column[rows] for column in columns))


def window_ids(view: View, size: int) -> list[tuple[int, NDArray[np.int64]]]:
    """`sample_window` of every stored window, oldest first."""
    return [
        (int(window), sample_window(view, int(window), size)) for window in stored_windows(view)
    ]


def one_update(view: View) -> ObservedAgent | None:
    """The agent after one more update, on a batch of training's size that the probe draws.

    The batch is uniform, as every sample of a probe is. None where the agent cannot say.
    """
    batch = sample(view, view.facts.batch_size)
    rows = len(batch.reward)
    shape = (2, rows, view.agent.act_dim)
    drawn = torch.from_numpy(view.rng.standard_normal(shape, dtype=np.float32))
    return view.agent.updated(batch, drawn.to(view.agent.device))


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


class CadencedProbe(Probe):
    """A probe that measures a batch `per_window` times in each window, from the first update on."""

    def __init__(self, batch: int, per_window: int) -> None:
        self._batch = at_least_one(batch, "batch")
        self._cadence = Cadence(per_window)

    def on_update(self, view: View, event: Update) -> None:
        """Measure if due."""
        if self._cadence.due(view):
            self.measure(view)

    def measure(self, view: View) -> None:
        """What the probe does when a measurement is due."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """When to measure next."""
        return {"next": self._cadence.next}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore it."""
        self._cadence.next = state["next"]
