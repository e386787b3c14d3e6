"""What algorithms share: how a state is put together at birth, and where its networks lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from fog.algorithms.optimiser import init_optimiser
from fog.networks import Params
from fog.settings.config import AgentConfig


def on_device(params: Params, device: torch.device) -> Params:
    """The same tree on a device."""
    return {name: tensor.to(device) for name, tensor in params.items()}


def learning_rates(config: AgentConfig) -> dict[str, float]:
    """Those at birth, by tree, of what every algorithm with an entropy temperature trains."""
    rates = {"actor": config.actor_lr, "critic": config.critic_lr}
    return rates | {"temperature": config.temperature_lr}


def born(
    trees: Mapping[str, Params], rates: Mapping[str, float], device: torch.device
) -> dict[str, Any]:
    """The fields of a state: trees on their device, the critics' target, an optimiser per rate."""
    fields: dict[str, Any] = {name: on_device(tree, device) for name, tree in trees.items()}
    fields["target"] = {name: tensor.clone() for name, tensor in fields["critic"].items()}
    for name, rate in rates.items():
        fields[f"{name}_optimiser"] = init_optimiser(fields[name], rate, device)
    return fields


def parameters(state: Any, network: str) -> Params:
    """The tree of the critics ("online"), of their targets ("online_target"), of the actor."""
    if network == "actor":
        return dict(state.actor)
    return dict(state.target if network == "online_target" else state.critic)


def temperature(state: Any) -> Tensor:
    """The entropy temperature alpha."""
    logarithm: Tensor = state.temperature["log"]
    return logarithm.detach().exp()
