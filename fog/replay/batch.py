"""A batch of transitions: six tensors cut from one block of memory.

Everything a batch holds is gathered into one flat float32 block, so that it reaches another device
in one transfer. Each tensor starts on a 64-byte boundary of the block and is contiguous.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

FloatArray = NDArray[np.float32]

_ALIGN = 16  # float32 values in 64 bytes


class Batch(NamedTuple):
    """Transitions with leading shape (n,) or (batches, batch_size), on the training device.

    Attributes:
        obs: Observation before the action.
        action: Action taken.
        reward: Reward received.
        bootstrap: 0.0 iff the episode terminated here; a truncated episode bootstraps (1.0).
        next_obs: Observation after the action; the true final one at an episode's end.
        weight: Importance weight for the critic losses, 1 unless the sampler is `per`.
    """

    obs: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    bootstrap: torch.Tensor
    next_obs: torch.Tensor
    weight: torch.Tensor


class Columns(NamedTuple):
    """The same six columns as numpy views of one block, ready to be filled."""

    obs: FloatArray
    action: FloatArray
    reward: FloatArray
    bootstrap: FloatArray
    next_obs: FloatArray
    weight: FloatArray


class Layout:
    """Where the six columns of a batch of a given leading shape lie in their block."""

    def __init__(self, leading: tuple[int, ...], obs_dim: int, act_dim: int) -> None:
        """Work out shapes and offsets once per leading shape."""
        scalar, obs, action = leading, (*leading, obs_dim), (*leading, act_dim)
        self._shapes = (obs, action, scalar, scalar, obs, scalar)
        self._lengths = [prod(shape) for shape in self._shapes]
        self._sections = [-(-length // _ALIGN) * _ALIGN for length in self._lengths]
        starts = [sum(self._sections[:i]) for i in range(len(self._sections))]
        self._places = [
            (shape, 4 * start) for shape, start in zip(self._shapes, starts, strict=True)
        ]
        self._total = sum(self._sections)

    def allocate(self) -> tuple[FloatArray, Columns]:
        """A block and its columns.

        The block is fresh for every batch: a consumer may keep a batch as long as it likes.
        """
        block = np.empty(self._total, dtype=np.float32)
        columns = [np.ndarray(shape, np.float32, block, at) for shape, at in self._places]
        return block, Columns(*columns)

    def to_torch(self, block: FloatArray, columns: Columns, device: torch.device) -> Batch:
        """The columns as tensors on `device`: without a copy on the CPU, else in one transfer."""
        import torch

        if device.type == "cpu":
            return Batch(*map(torch.from_numpy, columns))
        return self.split(torch.from_numpy(block).to(device))

    def split(self, block: torch.Tensor) -> Batch:
        """Cut a block that has arrived on another device into its columns."""
        parts = zip(
            block.split_with_sizes(self._sections), self._lengths, self._shapes, strict=True
        )
        return Batch(*(part[:length].view(shape) for part, length, shape in parts))
