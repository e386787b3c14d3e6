"""Any source of stored transitions as a replay that probes can read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from fog.errors import UserError
from fog.events import TransitionBatch, Transitions

IntArray = NDArray[np.int64]


class IterableMemory:
    """A replay behind a function that iterates over what is stored; see `fog.events.Memory`.

    Args:
        batches: returns an iterator over all stored transitions, oldest first, in batches of any
            size. It is called for every measurement.
        size: how many are stored now.
        added: how many were ever added; None if nothing is ever evicted.
        counts: how often each transition ever added was drawn; None if nobody counts, and then
            the probe `sample_counts` cannot be used.
    """

    def __init__(
        self,
        batches: Callable[[], Iterable[Transitions]],
        size: Callable[[], int],
        added: Callable[[], int] | None = None,
        counts: Callable[[], NDArray[np.int32]] | None = None,
    ) -> None:
        self._batches = batches
        self._size = size
        self._added = size if added is None else added
        self._counts = counts

    @property
    def size(self) -> int:
        """Transitions stored now."""
        return self._size()

    @property
    def added(self) -> int:
        """Transitions ever added."""
        return self._added()

    @property
    def counts(self) -> NDArray[np.int32]:
        """Draws of every transition ever added."""
        if self._counts is None:
            raise UserError("this replay does not count draws: leave the probe sample_counts out")
        return self._counts()

    def chunks(self, size: int) -> Iterator[tuple[IntArray, Transitions]]:
        """All stored transitions, oldest first; batches come as the source makes them."""
        first = self.added - self.size
        for batch in self._batches():
            rows = len(batch.reward)
            yield np.arange(first, first + rows), batch
            first += rows

    def take(self, ids: IntArray) -> TransitionBatch:
        """Chosen transitions, by one pass over everything."""
        order = np.argsort(ids, kind="stable")
        parts: list[list[torch.Tensor]] = []
        for stored, batch in self.chunks(0):
            inside = ids[order][(ids[order] >= stored[0]) & (ids[order] <= stored[-1])]
            if len(inside):
                rows = torch.from_numpy(inside - stored[0]).to(batch.reward.device)
                columns = (batch.obs, batch.action, batch.reward, batch.bootstrap, batch.next_obs)
                parts.append([column[rows] for column in columns])
        back = torch.from_numpy(np.argsort(order, kind="stable"))
        joined = (torch.cat(pieces) for pieces in zip(*parts, strict=True))
        return TransitionBatch(*(column[back.to(column.device)] for column in joined))
