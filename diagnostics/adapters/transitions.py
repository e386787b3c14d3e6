"""A file of transitions with their ages, as a replay that probes can read.

The file is a numpy archive (`np.savez`) with one row per transition in every column:

    obs         (N, obs_dim)   observation
    action      (N, act_dim)   action, in the units that the critics are given
    reward      (N,)           reward
    terminated  (N,)           1 iff the episode ended here by itself; a time limit is no end
    next_obs    (N, obs_dim)   observation after the action
    age         (N,)           transitions added since: the newest has age 0, in any order

Ages are whole numbers without a gap, because an insertion window is a stretch of neighbouring
transitions: store the whole buffer, or its newest part.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fog.errors import UserError
from fog.events import TransitionBatch

IntArray = NDArray[np.int64]

COLUMNS = {"obs": 2, "action": 2, "reward": 1, "terminated": 1, "next_obs": 2, "age": 1}
"""Columns of the file and their dimensions."""

TransitionSource: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]


class StoredTransitions:
    """Transitions of a file or of arrays, oldest first; see `fog.events.Memory`.

    Args:
        source: the file, or a mapping with its columns.
        added: transitions ever added to the replay that these are the newest of; None if all.
        device: where batches go.
        actions: stored actions to those in [-1, 1] that probes see; None leaves them.

    Raises:
        UserError: the file cannot be read, a column is missing or of another shape, or the ages
            are not those of neighbours.
    """

    def __init__(
        self,
        source: TransitionSource,
        added: int | None = None,
        device: torch.device | None = None,
        actions: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        columns = _checked(_read(source))
        oldest_first = np.argsort(-columns["age"], kind="stable")
        self.size = len(oldest_first)
        self.added = self.size if added is None else added
        if self.added < self.size:
            raise UserError(
                f"{self.size} transitions cannot be the newest of {self.added}: env_step is the "
                "number of transitions ever added"
            )
        arrays = {
            name: torch.from_numpy(np.asarray(column, np.float32)[oldest_first]).to(device)
            for name, column in columns.items()
            if name != "age"
        }
        action = arrays["action"] if actions is None else actions(arrays["action"])
        ended = arrays["terminated"]
        self._batch = TransitionBatch(
            arrays["obs"], action, arrays["reward"], 1.0 - ended, arrays["next_obs"]
        )

    @property
    def counts(self) -> NDArray[np.int32]:
        """Not known: a file of transitions does not say how often they were drawn."""
        raise UserError("a file of transitions does not say how often each was drawn")

    @property
    def act_dim(self) -> int:
        """Length of an action."""
        return int(self._batch.action.shape[1])

    def take(self, ids: IntArray) -> TransitionBatch:
        """Chosen transitions."""
        rows = torch.from_numpy(np.asarray(ids) - (self.added - self.size)).to(
            self._batch.reward.device
        )
        return TransitionBatch(*(column[rows] for column in self._batch))

    def chunks(self, size: int) -> Iterator[tuple[IntArray, TransitionBatch]]:
        """All transitions, oldest first."""
        first = self.added - self.size
        for start in range(0, self.size, size):
            stop = min(start + size, self.size)
            rows = TransitionBatch(*(column[start:stop] for column in self._batch))
            yield np.arange(first + start, first + stop), rows


def _read(source: TransitionSource) -> dict[str, NDArray[Any]]:
    if isinstance(source, Mapping):
        return {name: np.asarray(column) for name, column in source.items()}
    try:
        with np.load(source, allow_pickle=False) as file:
            return {name: file[name] for name in file.files if name in COLUMNS}
    except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or "it is no archive of numpy arrays (np.savez)"
        raise UserError(f"cannot read transitions from {source}: {reason}") from None


def _checked(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        hint = ": without ages nothing is old or new" if missing == ["age"] else ""
        raise UserError(f"the transitions lack the columns {', '.join(missing)}{hint}")
    count = len(columns["obs"]) if columns["obs"].ndim else 0
    for name, dimensions in COLUMNS.items():
        shape = columns[name].shape
        if len(shape) != dimensions or shape[0] != count or count == 0:
            wanted = ("(N,)", "(N, dim)")[dimensions - 1]
            raise UserError(f"column {name} has shape {shape}: {wanted} with N = {count} is needed")
        if columns[name].dtype.kind not in "buif" or not np.isfinite(columns[name]).all():
            raise UserError(f"column {name} holds something else than finite numbers")
    if columns["obs"].shape != columns["next_obs"].shape:
        raise UserError(
            f"obs has shape {columns['obs'].shape}, next_obs {columns['next_obs'].shape}: they "
            "must be equal"
        )
    ages = columns["age"]
    if not np.array_equal(np.sort(ages), np.arange(count)):
        values, times = np.unique(ages, return_counts=True)
        if (times > 1).any():
            what = f"age {values[times > 1][0]:g} comes {times[times > 1][0]} times"
        else:
            what = f"they lie between {ages.min():g} and {ages.max():g}"
        raise UserError(
            f"ages must be the numbers 0 to {count - 1}, the newest 0, each once: {what}"
        )
    return columns
