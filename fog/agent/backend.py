"""Which code makes an agent's updates: the algorithm as it is written down, or its fast form.

This is the only place that knows of `fog.fast`. Every family has a plain update; where a fast form
is known to compute the same and to be faster, it takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from fog import fast
from fog.algorithms.families import FAMILIES, Family, LossFunction, UpdateFunction
from fog.algorithms.hyperparameters import Hyperparameters
from fog.settings.config import Config


@dataclass(frozen=True)
class Backend:
    """The functions behind an agent, and the constants they are called with."""

    name: str
    """Of the family of algorithms."""
    hyper: Hyperparameters
    update_: UpdateFunction
    transition_losses: LossFunction
    compiler_options: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)
    """What torch's compiler must be told on the CPU beside its usual options."""

    @property
    def family(self) -> Family:
        """The algorithm as it is written down."""
        return FAMILIES[self.name]


def backend_of(config: Config, act_dim: int, device: torch.device, compiled: bool) -> Backend:
    """The backend of a run: fast where it can be, unless the config asks for the plain one."""
    name = config.agent.backbone
    family = FAMILIES[name]
    hyper = Hyperparameters.from_config(config, act_dim)
    if fast.serves(config, device):
        constants = fast.constants(hyper, config, compiled)
        options = fast.compiler_options(constants)
        return Backend(name, constants, fast.update_, fast.transition_losses, options)
    return Backend(name, hyper, family.update_, family.transition_losses)
