"""A batch of transitions: columns of one block of memory.

The transitions of a batch are gathered into one float32 block, one row each, which reaches another
device in one transfer. The tensors of a batch are columns of that block: they are not contiguous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

FloatArray = NDArray[np.float32]


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


def split(
    block: FloatArray,
    leading: tuple[int, ...],
    obs_dim: int,
    act_dim: int,
    weights: FloatArray | None,
    device: torch.device,
) -> Batch:
    """Cut a block of gathered rows into the columns of a batch, on `device`.

    A row is `observation | action | reward | bootstrap | next observation`. The block must be
    fresh: on the CPU the batch keeps it without a copy. Weights of None are all 1.
    """
    import torch

    shaped: Any = block.reshape(*leading, -1)
    if weights is None:
        weights = np.ones(leading, dtype=np.float32)
    weight = torch.from_numpy(weights)
    if device.type != "cpu":
        shaped, weight = torch.from_numpy(shaped).to(device), weight.to(device)
    reward = obs_dim + act_dim
    columns: list[Any] = [
        shaped[..., :obs_dim],
        shaped[..., obs_dim:reward],
        shaped[..., reward],
        shaped[..., reward + 1],
        shaped[..., reward + 2 :],
    ]
    # Cutting in numpy and converting then takes less time than cutting in torch.
    if device.type == "cpu":
        columns = list(map(torch.from_numpy, columns))
    obs, action, rewards, bootstrap, next_obs = columns
    return Batch(obs, action, rewards, bootstrap, next_obs, weight)
