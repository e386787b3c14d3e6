"""The constants of an update: everything that is neither state nor data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from fog.fast import kernels
from fog.fast.backward import Style
from fog.fast.minimum_twin import PAYS_FROM
from fog.networks import Activation, LogStd
from fog.settings.config import Config


@dataclass(frozen=True)
class Rule:
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
    picks: bool
    """Whether the actor's gradient goes back through each row's smaller twin only."""
    native: bool = False
    """Whether our own kernels compute the products: float32 on the CPU only."""

    @property
    def style(self) -> Style:
        """How this update evaluates its networks."""
        return Style(self.activation, self.native)

    @classmethod
    def from_config(cls, config: Config, act_dim: int) -> Rule:
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
            picks=picks(config),
        )

    def compiled_for(self, device: torch.device) -> Rule:
        """The rule of a compiled update: on the CPU in float32 it takes our kernels.

        Only with them it picks twins: torch's way of picking cannot be compiled.
        """
        native = device.type == "cpu" and not self.mixed_precision and kernels.load()
        return replace(self, native=native, picks=native and self.pessimism == 1.0)


def picks(config: Config) -> bool:
    """Whether the twin that the minimum did not pick is left out of an uncompiled actor's gradient.

    The values are the same to rounding. It takes a CPU as well, which the update looks at itself:
    a GPU would have to wait for the border between the twins.
    """
    wide = config.network.width >= PAYS_FROM
    return wide and config.agent.pessimism == 1.0 and config.runtime.precision == "float32"
