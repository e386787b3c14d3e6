"""The constants of an update: everything that is neither state nor data."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch
from torch import Tensor

from fog.networks import Activation, LogStd
from fog.settings.config import Config


@dataclass(frozen=True)
class Hyperparameters:
    """Settings that the update is compiled with."""

    offline: bool
    """Whether the offline critics and V of OBAC exist."""
    activation: Activation
    log_std: LogStd
    discount: float
    polyak: float
    pessimism: float
    weight_decay: float
    target_entropy: float
    """For the whole action, not per dimension."""
    bc_weight: float
    expectile: float
    mixed_precision: bool

    @classmethod
    def from_config(cls, config: Config, act_dim: int) -> Hyperparameters:
        """The update's constants of a run."""
        agent = config.agent
        return cls(
            offline=agent.backbone == "obac",
            activation=config.network.activation,
            log_std=LogStd(agent.log_std_map, agent.log_std_min, agent.log_std_max),
            discount=agent.discount,
            polyak=agent.polyak,
            pessimism=agent.pessimism,
            weight_decay=agent.weight_decay,
            target_entropy=agent.target_entropy * act_dim,
            bc_weight=agent.bc_weight,
            expectile=agent.expectile,
            mixed_precision=config.runtime.precision == "bfloat16",
        )


def precision(hyper: Hyperparameters, like: Tensor) -> contextlib.AbstractContextManager[object]:
    """Products in bfloat16 under mixed precision, in the tensors' own precision otherwise."""
    if not hyper.mixed_precision:
        return contextlib.nullcontext()
    return torch.autocast(like.device.type, dtype=torch.bfloat16)
