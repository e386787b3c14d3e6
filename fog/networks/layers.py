"""What both networks are made of: dense layers, LayerNorm, activations, initial values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

Params: TypeAlias = dict[str, Tensor]
"""A network's parameters by name; every network is a pure function of such a tree."""

Activation: TypeAlias = Literal["elu", "relu"]

Tap: TypeAlias = Callable[[str, Tensor, Activation | None], Tensor]
"""Sees every hidden layer by name, with the input z of its activation and the activation itself
(None: the layer has none), and returns the output that the network goes on with."""


class Look(NamedTuple):
    """One network as a probe looks at it: with parameters in place of the agent's own.

    `target` is what a critic is regressed on, see `fog.algorithms.sac.transition_losses`; the actor
    has none. `tap` sees the hidden layers.
    """

    network: str
    params: Params
    target: Tensor | None = None
    tap: Tap | None = None


LAYER_NORM_EPS = 1e-6
"""As in flax, which BRO (the paper's critic design) uses; torch's own default is 1e-5."""

GAIN = math.sqrt(2.0)
"""Gain of the orthogonal initial weights of every layer but the actor's log-std head."""


def activate(x: Tensor, activation: Activation | None) -> Tensor:
    """The activation function of the configuration; None is the identity."""
    if activation is None:
        return x
    return F.elu(x) if activation == "elu" else F.relu(x)


def tapped(tap: Tap | None, name: str, z: Tensor, activation: Activation | None) -> Tensor:
    """The output of layer `name`, whose activation has the input z, shown to the tap if any."""
    return activate(z, activation) if tap is None else tap(name, z, activation)


def layer_norm(x: Tensor, scale: Tensor, offset: Tensor) -> Tensor:
    """LayerNorm over the last dimension; scale and offset may carry an ensemble dimension.

    Under mixed precision `x` arrives in bfloat16 and is normalised in the parameters' precision.
    """
    size = x.shape[-1:]
    if scale.dim() == 1:
        return F.layer_norm(x.to(scale.dtype), size, scale, offset, LAYER_NORM_EPS)
    return torch.addcmul(offset, F.layer_norm(x.to(scale.dtype), size, eps=LAYER_NORM_EPS), scale)


def orthogonal(
    rng: np.random.Generator, fan_in: int, fan_out: int, gain: float
) -> NDArray[np.float32]:
    """An orthogonal (fan_in, fan_out) matrix times `gain`, uniform over such matrices.

    Drawn by numpy in double precision, so that the initial weights of a seed are the same on
    every device.
    """
    tall = rng.standard_normal((max(fan_in, fan_out), min(fan_in, fan_out)))
    q, r = np.linalg.qr(tall)
    q *= np.sign(np.diagonal(r))
    matrix = q if fan_in >= fan_out else q.T
    return np.ascontiguousarray(gain * matrix, dtype=np.float32)
