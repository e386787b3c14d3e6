"""The networks' gradients, written out: the update's forward pass remembers, this goes back.

Autograd answers every question, an update asks three: weight gradients of the critics, weight
gradients of the actor, and the critics' gradient with respect to the action alone. Written out they
need no graph, no gradient that nobody reads and no pass over memory that can be saved, and on the
CPU that is what an update at small widths spends its time on (docs/performance.md). Tests hold
every function here to autograd's gradient of the plain forward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from fog.networks.actor import HIDDEN
from fog.networks.critic import block_keys, depth_of
from fog.networks.layers import LAYER_NORM_EPS, Activation, Params


class Dense(NamedTuple):
    """What a dense layer leaves behind.

    Attributes:
        inputs: what it saw, (E, B, fan_in).
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


def critic_values(params: Params, inputs: Tensor, activation: Activation) -> tuple[Tensor, Tape]:
    """Values (E, B) of every member, as `critic_forward`, and the tape to go back on.

    Args:
        params: a critic's tree.
        inputs: (B, input_dim), the same for every member, or (E, B, input_dim).
        activation: name of the activation.
    """
    layers: dict[str, Dense] = {}
    if inputs.dim() == 2:
        inputs = inputs.expand(params["stem.weight"].shape[0], -1, -1)
    x = _forward(params, "stem", inputs, activation, layers)
    if "hidden.weight" in params:
        x = _forward(params, "hidden", x, activation, layers)
    for index in range(depth_of(params)):
        inner, outer = block_keys(index)
        h = _forward(params, inner, x, activation, layers)
        x = x + _forward(params, outer, h, None, layers)
    # A product with a single column is a sum, and as a batched product it takes ten times as long.
    values = (x * params["head.weight"].transpose(1, 2)).sum(dim=-1)
    return values + params["head.bias"].squeeze(-1), Tape(layers, x)


def critic_weight_gradients(
    params: Params, tape: Tape, slope: Tensor, activation: Activation
) -> Params:
    """Gradient with respect to every parameter; `slope` (E, B) is the loss's in the values."""
    grads: Params = {}
    to_stem(params, tape, slope, activation, grads)
    return grads


def action_gradient(
    params: Params, tape: Tape, slope: Tensor, activation: Activation, act_dim: int
) -> Tensor:
    """Gradient with respect to the last `act_dim` inputs, (B, act_dim), all members added up."""
    grad = to_stem(params, tape, slope, activation, None)
    weight = params["stem.weight"][:, -act_dim:]
    return _product(grad, weight.transpose(1, 2)).sum(dim=0)


def actor_head(params: Params, obs: Tensor, activation: Activation) -> tuple[Tensor, Tape]:
    """The actor's last layer (B, 2 act_dim), mean and unclipped log std, and the tape."""
    layers: dict[str, Dense] = {}
    stacked, x = _stacked(params), obs.unsqueeze(0)
    for key in HIDDEN:
        x = _forward(stacked, key, x, activation, layers)
    head = (x[0] @ params["head.weight"]).to(obs.dtype).add_(params["head.bias"])
    return head, Tape(layers, x)


def actor_weight_gradients(
    params: Params, tape: Tape, slope: Tensor, activation: Activation
) -> Params:
    """Gradient with respect to every parameter; `slope` (B, 2 act_dim) is that in the head."""
    stacked = _stacked(params)
    grads: Params = {}
    grads["head.weight"] = (tape.features[0].t() @ slope).to(slope.dtype)
    grads["head.bias"] = slope.sum(dim=0)
    grad = _product(slope.unsqueeze(0), stacked["head.weight"].transpose(1, 2))
    for key in reversed(HIDDEN):
        grad = _backward(stacked, key, tape.layers[key], grad, activation, grads)
        if key != HIDDEN[0]:
            grad = _product(grad, stacked[f"{key}.weight"].transpose(1, 2))
    return {name: grads[name].reshape(tensor.shape) for name, tensor in params.items()}


def _stacked(params: Params) -> Params:
    """The actor's tree as an ensemble of one, in views."""
    return {
        name: tensor.unsqueeze(0) if tensor.dim() == 2 else tensor.view(1, 1, -1)
        for name, tensor in params.items()
    }


Product: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def _product(left: Tensor, right: Tensor) -> Tensor:
    """A batched product in the precision of `left`, also where autocast computes it in another."""
    return torch.bmm(left, right).to(left.dtype)


def to_stem(
    params: Params,
    tape: Tape,
    slope: Tensor,
    activation: Activation,
    grads: Params | None,
    product: Product = _product,
) -> Tensor:
    """Gradient with respect to the stem's product, from `slope` (E, B), that in the values.

    Gradients of parameters go to `grads`, if it is given. `product` goes back through a weight.
    """
    slope = slope.unsqueeze(-1)
    grad = slope * params["head.weight"].transpose(1, 2)
    if grads is not None:
        grads["head.weight"] = (tape.features * slope).sum(dim=1).unsqueeze(-1)
        grads["head.bias"] = slope.sum(dim=1, keepdim=True)
    for index in reversed(range(depth_of(params))):
        inner, outer = block_keys(index)
        back = _backward(params, outer, tape.layers[outer], grad, None, grads)
        back = product(back, params[f"{outer}.weight"].transpose(1, 2))
        back = _backward(params, inner, tape.layers[inner], back, activation, grads)
        # The residual path passes the gradient on unchanged.
        grad = product(back, params[f"{inner}.weight"].transpose(1, 2)).add_(grad)
    if "hidden.weight" in params:
        grad = _backward(params, "hidden", tape.layers["hidden"], grad, activation, grads)
        grad = product(grad, params["hidden.weight"].transpose(1, 2))
    return _backward(params, "stem", tape.layers["stem"], grad, activation, grads)


def _forward(
    params: Params, key: str, x: Tensor, activation: Activation | None, layers: dict[str, Dense]
) -> Tensor:
    weight, bias = params[f"{key}.weight"], params[f"{key}.bias"]
    # Not baddbmm, which first fills its result with the bias; this sum the compiler fuses.
    output = _product(x, weight).add_(bias)
    normal = spread = None
    if f"{key}.scale" in params:
        output -= output.mean(dim=-1, keepdim=True)
        norm = torch.linalg.vector_norm(output, dim=-1, keepdim=True)
        spread = (norm.square_() / output.shape[-1]).add_(LAYER_NORM_EPS).rsqrt_()
        normal = output.mul_(spread)
        output = torch.addcmul(params[f"{key}.offset"], normal, params[f"{key}.scale"])
    if activation == "relu":
        output = output.relu_()
    elif activation == "elu":
        # torch's own ELU takes four times as long.
        below = output.clamp(max=0.0).expm1_()
        output = output.clamp_(min=0.0).add_(below)
    layers[key] = Dense(x, normal, spread, output)
    return output


def _backward(
    params: Params,
    key: str,
    layer: Dense,
    grad: Tensor,
    activation: Activation | None,
    grads: Params | None,
) -> Tensor:
    """From the gradient in a layer's output to that in its product."""
    if activation == "relu":
        grad = torch.ops.aten.threshold_backward(grad, layer.output, 0.0)
    elif activation == "elu":
        grad = torch.ops.aten.elu_backward(grad, 1.0, 1.0, 1.0, True, layer.output)
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
        grads[f"{key}.weight"] = _product(layer.inputs.transpose(1, 2), grad)
        grads[f"{key}.bias"] = grad.sum(dim=1, keepdim=True)
    return grad
