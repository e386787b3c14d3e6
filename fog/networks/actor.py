"""The actor: a plain MLP of three dense layers, two hidden and a linear head.

The paper's hyperparameter table says "actor dense layers 3"; we read it as two hidden layers and
the head. The head gives the mean and the log standard deviation of a Gaussian that tanh squashes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fog.networks.layers import (
    GAIN,
    Activation,
    Params,
    Tap,
    layer_norm,
    orthogonal,
    tapped,
)
from fog.networks.policy import LogStd
from fog.records.sizes import ACTOR_HIDDEN, Shapes

LOG_STD_GAIN = 1.0
"""Initial gain of the log-std half of the head, as in BRO and SAC with resets."""


def init_actor(rng: np.random.Generator, shapes: Shapes) -> Params:
    """Fresh values: orthogonal weights, zero biases, LayerNorm as the identity."""
    params: Params = {}
    for name, shape in shapes.items():
        if name == "head.weight":
            fan_in, outputs = shape
            halves = [orthogonal(rng, fan_in, outputs // 2, g) for g in (GAIN, LOG_STD_GAIN)]
            params[name] = torch.from_numpy(np.concatenate(halves, axis=1))
        elif name.endswith(".weight"):
            fan_in, fan_out = shape
            params[name] = torch.from_numpy(orthogonal(rng, fan_in, fan_out, GAIN))
        else:
            params[name] = torch.full(shape, 1.0 if name.endswith(".scale") else 0.0)
    return params


def actor_forward(
    params: Params,
    obs: Tensor,
    activation: Activation,
    log_std: LogStd,
    tap: Tap | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and log standard deviation before squashing, each (B, act_dim)."""
    x = obs
    for key in ACTOR_HIDDEN:
        x = torch.addmm(params[f"{key}.bias"], x, params[f"{key}.weight"])
        if f"{key}.scale" in params:
            x = layer_norm(x, params[f"{key}.scale"], params[f"{key}.offset"])
        x = tapped(tap, key, x, activation)
    head = torch.addmm(params["head.bias"], x, params["head.weight"]).to(obs.dtype)
    mean, free = head.chunk(2, dim=-1)
    return mean, log_std(free)
