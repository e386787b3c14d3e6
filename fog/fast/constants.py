"""Where the fast updates apply, and their constants besides the algorithm's own."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch

from fog.algorithms.hyperparameters import Hyperparameters
from fog.fast import kernels
from fog.fast.backward import Style
from fog.fast.minimum_twin import PAYS_FROM
from fog.settings.config import Config


@dataclass(frozen=True)
class FastHyperparameters(Hyperparameters):
    """The algorithm's constants, and how the fast update computes."""

    one_twin: bool = False
    """Whether the actor's gradient goes back through each row's smaller twin only."""
    native: bool = False
    """Whether our own kernels compute the products."""

    @property
    def style(self) -> Style:
        """How this update evaluates its networks."""
        return Style(self.activation, self.native)


SERVED = ("sac", "obac")


def serves(config: Config, device: torch.device) -> bool:
    """Whether there is a fast update, known to be faster on `device`, and it is wanted."""
    return device.type == "cpu" and _wanted(config)


def constants(hyper: Hyperparameters, config: Config, compiled: bool) -> FastHyperparameters:
    """The constants of a fast update.

    Compiled it takes our kernels, where they can be built, and only with them it picks twins:
    torch's way of picking cannot be compiled.
    """
    native = compiled and kernels.load()
    picks = native and hyper.pessimism == 1.0 if compiled else one_twin_pays(config)
    plain = {field.name: getattr(hyper, field.name) for field in fields(hyper)}
    return FastHyperparameters(**plain, one_twin=picks, native=native)


def compiler_options(hyper: FastHyperparameters) -> dict[str, Any]:
    """What torch's compiler must know about our kernels, if the update uses them."""
    if not hyper.native:
        return {}
    return {"aot_inductor.custom_ops_to_c_shims": kernels.declarations()}


def one_twin_pays(config: Config) -> bool:
    """Whether an uncompiled update leaves out the twin that the minimum did not pick.

    The values are the same to rounding.
    """
    return _wanted(config) and config.agent.pessimism == 1.0 and config.network.width >= PAYS_FROM


def _wanted(config: Config) -> bool:
    runtime = config.runtime
    known = config.agent.backbone in SERVED and config.lifecycle.growth == "block"
    return known and runtime.backend == "auto" and runtime.precision == "float32"
