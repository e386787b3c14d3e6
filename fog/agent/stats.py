"""What a call of `Agent.update` reports, fetched from the device only when asked for."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class UpdateStats:
    """Statistics of k updates; nothing waits for the device until a property is read."""

    def __init__(self, names: tuple[str, ...], metrics: list[Tensor], td: list[Tensor]) -> None:
        self._names = names
        self._metrics = metrics
        self._td = td

    @cached_property
    def _table(self) -> NDArray[np.float64]:
        return torch.stack(self._metrics).double().cpu().numpy()

    @property
    def updates(self) -> int:
        """Number of updates reported on."""
        return len(self._metrics)

    @cached_property
    def metrics(self) -> dict[str, float]:
        """Every metric, averaged over the updates of the call."""
        return dict(zip(self._names, self._table.mean(axis=0).tolist(), strict=True))

    @cached_property
    def td_error(self) -> NDArray[np.float32]:
        """|TD error| of every drawn transition, (k, B): the larger of the online twins'."""
        return torch.stack(self._td).cpu().numpy()

    @cached_property
    def finite(self) -> bool:
        """Whether all losses and values were finite in every update."""
        return bool(np.isfinite(self._table).all())
