"""What the opponents share: how a state is put together at birth, and where its networks lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from fog.algorithms.growth import on_device
from fog.algorithms.optimiser import init_optimiser
from fog.networks import Params


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
