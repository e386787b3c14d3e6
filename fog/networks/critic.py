"""The growable critic: an ensemble of residual networks evaluated as one batched product.

Each member is a stem of one layer act(LN(Dense(x))) as in BRO, or of two as in the SAC family's
MLP, then residual blocks x + LN(Dense(act(LN(Dense(x))))), then a linear head. LayerNorm can be
left out: the original SAC is a stem of two without it. Every tensor has a leading ensemble
dimension E. The online twins of SAC are E = 2; OBAC stacks online and offline twins as E = 4; the
state value V is E = 1 and sees the observation only. BRO's actors are such networks too, E = 1.
Growing is adding the keys of a block, which changes the function: the paper's expansion does not
preserve it. A plasticity injection does: with h all that comes after the stem, it freezes h, and
adds the difference of two equal fresh copies of it, of which the first learns.
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
from fog.records.sizes import Shapes, block_keys


def init_critic(rng: np.random.Generator, shapes: Shapes) -> Params:
    """Fresh values for a critic or a block.

    Orthogonal weights of gain sqrt(2) including the head, zero biases, LayerNorm as the identity.
    """
    return init_scaled(rng, shapes, (GAIN,))


def init_scaled(rng: np.random.Generator, shapes: Shapes, gains: tuple[float, ...]) -> Params:
    """As `init_critic`, with a head of as many equal parts as there are gains, one for each."""
    params: Params = {}
    for name, shape in shapes.items():
        if name.endswith(".weight"):
            ensemble, fan_in, fan_out = shape
            parts = gains if name == "head.weight" else (GAIN,)
            drawn = [
                [orthogonal(rng, fan_in, fan_out // len(parts), gain) for gain in parts]
                for _ in range(ensemble)
            ]
            params[name] = torch.from_numpy(np.stack([np.hstack(part) for part in drawn]))
        else:
            params[name] = torch.full(shape, 1.0 if name.endswith(".scale") else 0.0)
    return params


def depth_of(params: Params) -> int:
    """Number of residual blocks and of injections: a property of the tree."""
    return _blocks(params) + _frozen_parts(params) // 2


def _blocks(params: Params) -> int:
    found = 0
    while f"block{found}.inner.weight" in params:
        found += 1
    return found


def _frozen_parts(params: Params) -> int:
    found = 0
    while f"frozen{found}.head.weight" in params:
        found += 1
    return found


def members(params: Params, start: int, stop: int) -> Params:
    """Members `start` to `stop` of the ensemble, as views."""
    return {name: tensor[start:stop] for name, tensor in params.items()}


def critic_forward(
    params: Params, inputs: Tensor, activation: Activation, tap: Tap | None = None
) -> Tensor:
    """Evaluate every member: (E, B), or (E, B, outputs) of a head with several.

    Inputs are (B, input_dim), the same for every member, or (E, B, input_dim). The tap is called
    with (name, z, activation) of every hidden dense layer and of the last residual sum
    ("features"), and the network continues with what it returns. z is the input of the activation,
    after the LayerNorm. The outer layers of the blocks and the sum have no activation; the outer
    layers are seen before they are added to the residual path.
    """
    if inputs.dim() == 2:
        inputs = inputs.expand(params["stem.weight"].shape[0], -1, -1)
    x = tapped(tap, "stem", _dense_norm(params, "stem", inputs), activation)
    if "hidden.weight" in params:
        x = tapped(tap, "hidden", _dense_norm(params, "hidden", x), activation)
    values = _head(params, "", x, activation, tap)
    for index in range(_frozen_parts(params)):
        part = _head(params, f"frozen{index}.", x, activation, None)
        values = values - part if index % 2 else values + part
    return values.squeeze(-1).to(x.dtype)


def _head(
    params: Params, prefix: str, x: Tensor, activation: Activation, tap: Tap | None
) -> Tensor:
    """Blocks and linear head, of the tree itself or of a frozen part of it."""
    for index in range(_blocks(params)):
        inner, outer = (f"{prefix}{key}" for key in block_keys(index))
        h = tapped(tap, inner, _dense_norm(params, inner, x), activation)
        x = x + tapped(tap, outer, _dense_norm(params, outer, h), None)
    x = tapped(tap, "features", x, None)
    weight, bias = params[f"{prefix}head.weight"], params.get(f"{prefix}head.bias")
    return torch.bmm(x, weight) if bias is None else torch.baddbmm(bias, x, weight)


def _dense_norm(params: Params, key: str, x: Tensor) -> Tensor:
    h = torch.baddbmm(params[f"{key}.bias"], x, params[f"{key}.weight"])
    if f"{key}.scale" not in params:
        return h
    return layer_norm(h, params[f"{key}.scale"], params[f"{key}.offset"])
