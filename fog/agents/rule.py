"""The constants of an update: everything that is neither state nor data."""

from __future__ import annotations

from dataclasses import dataclass

from fog.config import Config
from fog.networks import Activation
from fog.networks.picked import PAYS_FROM


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
    picks: bool
    """Whether the actor's gradient goes back through each row's smaller twin only."""

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
            picks=picks(config),
        )


def picks(config: Config) -> bool:
    """Whether the twin that the minimum did not pick is left out of the actor's gradient.

    The values are the same to rounding. It takes a CPU as well, which the update looks at itself:
    a GPU would have to wait for the border between the twins.
    """
    wide = config.network.width >= PAYS_FROM
    return wide and config.agent.pessimism == 1.0 and config.runtime.precision == "float32"
