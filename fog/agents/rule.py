"""The constants of an update: everything that is neither state nor data."""

from __future__ import annotations

from dataclasses import dataclass

from fog.config import Config
from fog.networks import Activation


@dataclass(frozen=True)
class Rule:
    """Settings that the update is compiled with."""

    offline: bool
    """Whether the offline critics and V of OBAC exist."""
    activation: Activation
    log_std_bounds: tuple[float, float]
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
    def from_config(cls, config: Config, act_dim: int) -> Rule:
        """The update's constants of a run."""
        agent = config.agent
        return cls(
            offline=agent.backbone == "obac",
            activation=config.network.activation,
            log_std_bounds=(agent.log_std_min, agent.log_std_max),
            discount=agent.discount,
            polyak=agent.polyak,
            pessimism=agent.pessimism,
            weight_decay=agent.weight_decay,
            target_entropy=agent.target_entropy * act_dim,
            bc_weight=agent.bc_weight,
            expectile=agent.expectile,
            mixed_precision=config.runtime.precision == "bfloat16",
        )
