"""Hand-written backward passes of the networks, from what the forward pass stored.

Autograd computes any gradient, but an update needs only three: weight gradients of the critics,
weight gradients of the actor, and the critics' gradient with respect to the action alone. Written
by hand they need no graph, no unused gradient and no avoidable pass over memory; on the CPU an
update at small widths spends its time on these (docs/performance.md). Tests compare every function
here with autograd's gradient of the plain forward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from fog.fast import products
from fog.networks.critic import depth_of
from fog.networks.layers import LAYER_NORM_EPS, Activation, Params
from fog.records.sizes import ACTOR_HIDDEN, block_keys

_DOWNWARDS = tuple(pairwise((*ACTOR_HIDDEN, "head")))[::-1]
"""The actor's hidden layers from the last to the first, each with the layer above it."""


class Style(NamedTuple):
    """How networks are evaluated; `native` products are those of our own kernels."""

    activation: Activation
    native: bool = False


class Dense(NamedTuple):
    """What a dense layer leaves behind.

    Attributes:
        inputs: what it saw, (E, B, fan_in) or (B, fan_in).
        normal: its normalised output before scale and offset; None without LayerNorm.
        spread: reciprocal standard deviation that it was normalised with, (E, B, 1).
        output: what it passed on.
    """

    inputs: Tensor
    normal: Tensor | None
    spread: Tensor | None
    output: Tensor


class Tape(NamedTuple):
    """All layers of one forward pass, and what entered the head."""

    layers: dict[str, Dense]
    features: Tensor


def critic_values(params: Params, inputs: Tensor, style: Style) -> tuple[Tensor, Tape]:
    """Values (E, B) of every member, as `critic_forward`, and the tape to go back on.

    Inputs are (B, input_dim), the same for every member, or (E, B, input_dim).
    """
    layers: dict[str, Dense] = {}
    x = _forward(params, "stem", inputs, style, layers)
    if "hidden.weight" in params:
        x = _forward(params, "hidden", x, style, layers)
    for index in range(depth_of(params)):
        inner, outer = block_keys(index)
        h = _forward(params, inner, x, style, layers)
        x = x + _forward(params, outer, h, style, layers, active=False)
    # A product with a single column is a sum, and as a batched product it takes ten times as long.
    values = (x * params["head.weight"].transpose(1, 2)).sum(dim=-1)
    return values + params["head.bias"].squeeze(-1), Tape(layers, x)


def critic_weight_gradients(params: Params, tape: Tape, slope: Tensor, style: Style) -> Params:
    """Gradient with respect to every parameter; `slope` (E, B) is the loss's in the values."""
    grads: Params = {}
    to_stem(params, tape, slope, style, grads, ordinary_back(params, tape, style))
    return grads


def action_gradient(
    params: Params, tape: Tape, slope: Tensor, style: Style, act_dim: int
) -> Tensor:
    """Gradient with respect to the last `act_dim` inputs, (B, act_dim), all members added up."""
    grad = to_stem(params, tape, slope, style, None, ordinary_back(params, tape, style))
    weight = params["stem.weight"][:, -act_dim:]
    return products.back(grad, weight, None, style.native).sum(dim=0)


def actor_head(params: Params, obs: Tensor, style: Style) -> tuple[Tensor, Tape]:
    """The actor's last layer (B, 2 act_dim), mean and unclipped log std, and the tape."""
    layers: dict[str, Dense] = {}
    stacked, x = _stacked(params), obs.unsqueeze(0)
    for key in ACTOR_HIDDEN:
        x = _forward(stacked, key, x, style, layers)
    head = products.dense(x, stacked["head.weight"], stacked["head.bias"], False, style.native)
    return head[0].to(obs.dtype), Tape(layers, x)


def actor_weight_gradients(params: Params, tape: Tape, slope: Tensor, style: Style) -> Params:
    """Gradient with respect to every parameter; `slope` (B, 2 act_dim) is that in the head."""
    stacked = _stacked(params)
    back = ordinary_back(stacked, tape, style)
    grads: Params = {}
    grad = slope.unsqueeze(0)
    _weight_gradients("head", tape.features, grad, style, grads)
    for key, above in _DOWNWARDS:
        grad = back(grad, above, key)
        grad = _through_dense(stacked, key, tape.layers[key], grad, style, grads)
    return {name: grads[name].reshape(tensor.shape) for name, tensor in params.items()}


def _stacked(params: Params) -> Params:
    """The actor's tree as an ensemble of one, in views."""
    return {
        name: tensor.unsqueeze(0) if tensor.dim() == 2 else tensor.view(1, 1, -1)
        for name, tensor in params.items()
    }


Back: TypeAlias = Callable[[Tensor, str, str | None], Tensor]
"""From the gradient in the product of layer `key` to that in its inputs, and on through the
activation of layer `below`, which made them; None if they are a residual sum."""


def ordinary_back(params: Params, tape: Tape, style: Style) -> Back:
    """Every row back through every member."""

    def back(grad: Tensor, key: str, below: str | None) -> Tensor:
        output = None if below is None else tape.layers[below].output
        gate = output if style.activation == "relu" else None
        grad = products.back(grad, params[f"{key}.weight"], gate, style.native)
        return grad if output is None or gate is not None else through_elu(grad, output)

    return back


def to_stem(
    params: Params,
    tape: Tape,
    slope: Tensor,
    style: Style,
    grads: Params | None,
    back: Back,
) -> Tensor:
    """Gradient with respect to the stem's product, from `slope` (E, B), that in the values.

    Gradients of parameters go to `grads`, if it is given. `back` goes back through a weight.
    """
    slope = slope.unsqueeze(-1)
    grad = slope * params["head.weight"].transpose(1, 2)
    if grads is not None:
        grads["head.weight"] = (tape.features * slope).sum(dim=1).unsqueeze(-1)
        grads["head.bias"] = slope.sum(dim=1, keepdim=True)
    layers, depth = tape.layers, depth_of(params)
    for index in reversed(range(depth)):
        inner, outer = block_keys(index)
        inside = _through_dense(params, outer, layers[outer], grad, style, grads)
        inside = back(inside, outer, inner)
        inside = _through_dense(params, inner, layers[inner], inside, style, grads)
        # The residual path passes the gradient on unchanged.
        grad = back(inside, inner, None).add_(grad)
    if "hidden.weight" in params:
        grad = _through_activation(grad, layers["hidden"].output, style)
        grad = _through_dense(params, "hidden", layers["hidden"], grad, style, grads)
        grad = back(grad, "hidden", "stem")
    else:
        grad = _through_activation(grad, layers["stem"].output, style)
    return _through_dense(params, "stem", layers["stem"], grad, style, grads)


def _forward(
    params: Params,
    key: str,
    x: Tensor,
    style: Style,
    layers: dict[str, Dense],
    active: bool = True,
) -> Tensor:
    weight, bias = params[f"{key}.weight"], params[f"{key}.bias"]
    normalised, relu = f"{key}.scale" in params, active and style.activation == "relu"
    output = products.dense(x, weight, bias, relu and not normalised, style.native)
    normal = spread = None
    if normalised:
        output -= output.mean(dim=-1, keepdim=True)
        norm = torch.linalg.vector_norm(output, dim=-1, keepdim=True)
        spread = (norm.square_() / output.shape[-1]).add_(LAYER_NORM_EPS).rsqrt_()
        normal = output.mul_(spread)
        output = torch.addcmul(params[f"{key}.offset"], normal, params[f"{key}.scale"])
        output = output.relu_() if relu else output
    if active and style.activation == "elu":
        # torch's own ELU takes four times as long.
        below = output.clamp(max=0.0).expm1_()
        output = output.clamp_(min=0.0).add_(below)
    layers[key] = Dense(x, normal, spread, output)
    return output


def _through_activation(grad: Tensor, output: Tensor, style: Style) -> Tensor:
    relu = style.activation == "relu"
    return products.through_relu(grad, output) if relu else through_elu(grad, output)


def through_elu(grad: Tensor, output: Tensor) -> Tensor:
    """From the gradient in the output of an ELU to that in its input."""
    result: Tensor = torch.ops.aten.elu_backward(grad, 1.0, 1.0, 1.0, True, output)
    return result


def _through_dense(
    params: Params, key: str, layer: Dense, grad: Tensor, style: Style, grads: Params | None
) -> Tensor:
    """From the gradient in a layer's output before its activation to that in its product."""
    if layer.normal is not None and layer.spread is not None:
        if grads is not None:
            grads[f"{key}.scale"] = (grad * layer.normal).sum(dim=1, keepdim=True)
            grads[f"{key}.offset"] = grad.sum(dim=1, keepdim=True)
        zero, one = torch.zeros_like(layer.spread), torch.ones_like(layer.spread)
        size = [layer.normal.shape[-1]]
        # Of what is normalised already, mean 0 and spread 1: the saved one is applied below.
        grad = torch.ops.aten.native_layer_norm_backward(
            grad * params[f"{key}.scale"],
            layer.normal,
            size,
            zero,
            one,
            None,
            None,
            [True, False, False],
        )[0]
        grad = grad.mul_(layer.spread)
    if grads is not None:
        _weight_gradients(key, layer.inputs, grad, style, grads)
    return grad


def _weight_gradients(key: str, inputs: Tensor, grad: Tensor, style: Style, grads: Params) -> None:
    weight, bias = products.weight_gradients(inputs, grad, style.native)
    grads[f"{key}.weight"], grads[f"{key}.bias"] = weight, bias
