"""SimBa's residual network: LayerNorm before each block and not within it, inner layers 4 x wider.

A stem without activation, blocks x + Dense(ReLU(Dense(LN(x)))), a last LayerNorm, a linear head.
Every tensor has a leading ensemble dimension, as in `fog.networks.critic`.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fog.networks.critic import depth_of
from fog.networks.layers import Params, Tap, layer_norm, orthogonal, tapped
from fog.records.sizes import Shapes, block_keys

_TRUNCATED_DEVIATION = 0.87962566103423978
"""Standard deviation of a standard normal that is cut off at -2 and 2."""


def init_pre_norm(rng: np.random.Generator, shapes: Shapes, heads: int = 1) -> Params:
    """Fresh values of a network or a block.

    Stem and head are orthogonal of gain 1, a head of several parts part by part; blocks are He
    normal, a normal cut off at two deviations; biases are zero, LayerNorms the identity.
    """
    params: Params = {}
    for name, shape in shapes.items():
        if not name.endswith(".weight"):
            params[name] = torch.full(shape, 1.0 if name.endswith(".scale") else 0.0)
            continue
        ensemble, fan_in, fan_out = shape
        if name.startswith("block"):
            deviation = math.sqrt(2.0 / fan_in) / _TRUNCATED_DEVIATION
            drawn = deviation * _truncated_normal(rng, shape)
            params[name] = torch.from_numpy(drawn.astype(np.float32))
            continue
        parts = heads if name == "head.weight" else 1
        matrices = [
            np.hstack([orthogonal(rng, fan_in, fan_out // parts, 1.0) for _ in range(parts)])
            for _ in range(ensemble)
        ]
        params[name] = torch.from_numpy(np.stack(matrices))
    return params


def pre_norm_forward(params: Params, inputs: Tensor, tap: Tap | None = None) -> Tensor:
    """Evaluate every member at inputs (B, input_dim): (E, B, outputs).

    The tap is that of `fog.networks.critic_forward`; "features" is the output of the last
    LayerNorm.
    """
    x = inputs.expand(params["stem.weight"].shape[0], -1, -1)
    x = tapped(tap, "stem", _dense(params, "stem", x), None)
    for index in range(depth_of(params)):
        inner, outer = block_keys(index)
        normed = layer_norm(x, params[f"block{index}.scale"], params[f"block{index}.offset"])
        h = tapped(tap, inner, _dense(params, inner, normed), "relu")
        x = x + tapped(tap, outer, _dense(params, outer, h), None)
    x = layer_norm(x, params["norm.scale"], params["norm.offset"])
    x = tapped(tap, "features", x, None)
    return _dense(params, "head", x).to(x.dtype)


def _dense(params: Params, key: str, x: Tensor) -> Tensor:
    return torch.baddbmm(params[f"{key}.bias"], x, params[f"{key}.weight"])


def _truncated_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    drawn = rng.standard_normal(shape)
    while (outside := np.abs(drawn) > 2.0).any():
        drawn[outside] = rng.standard_normal(int(outside.sum()))
    return drawn
