"""The matrix products of an update, each with the bias, gate or sum that goes with it.

Every function has two forms: torch's operations, which run everywhere and in every precision, and
one kernel of our own (`native`; `fog.fast.kernels`), for float32 on the CPU. Both compute the same.
Ensembles have a leading dimension E; rows are transitions.
"""

from __future__ import annotations

import torch
from torch import Tensor


def dense(inputs: Tensor, weight: Tensor, bias: Tensor, relu: bool, native: bool) -> Tensor:
    """`inputs` times `weight` plus `bias`, and its positive part if `relu`: (E, B, n).

    Inputs are (E, B, m), or (B, m) for every member; the weight is (E, m, n), the bias (E, 1, n).
    """
    if native:
        result: Tensor = torch.ops.fog.dense(inputs, weight, bias, relu)
        return result
    # Not baddbmm, which first fills its result with the bias; this sum the compiler fuses.
    output = _product(_stacked(inputs, weight), weight).add_(bias)
    return output.relu_() if relu else output


def back(gradient: Tensor, weight: Tensor, gate: Tensor | None, native: bool) -> Tensor:
    """`gradient` (E, B, n) back through `weight` (E, m, n), and then through a ReLU: (E, B, m).

    `gate` is the output (E, B, m) of the ReLU that made the inputs; None if none did.
    """
    if native:
        result: Tensor = torch.ops.fog.back(gradient, weight, gate)
        return result
    product = _product(gradient, weight.transpose(1, 2))
    return product if gate is None else through_relu(product, gate)


def weight_gradients(inputs: Tensor, gradient: Tensor, native: bool) -> tuple[Tensor, Tensor]:
    """Gradients in the weight (E, m, n) and the bias (E, 1, n) of a dense layer.

    It saw `inputs` (E, B, m), or (B, m) for every member; `gradient` (E, B, n) is in its product.
    """
    if native:
        weight, bias = torch.ops.fog.weight_gradients(inputs, gradient)
        return weight, bias
    weight = _product(_stacked(inputs, gradient).transpose(1, 2), gradient)
    return weight, gradient.sum(dim=1, keepdim=True)


def back_one_twin(
    gradient: Tensor, weight: Tensor, pick: Tensor, gate: Tensor | None, native: bool
) -> Tensor:
    """As `back`, but each row of (B, n) goes through one of two members: (B, m).

    `pick` (B,) says whether a row goes through the second. `gate` is (2, B, m), of which each row
    sees its own member's. Torch's version cannot be compiled, because the number of rows per member
    is not known in advance.
    """
    if native:
        result: Tensor = torch.ops.fog.back_one_twin(gradient, weight, pick, gate)
        return result
    product = gradient.new_empty(len(gradient), weight.shape[1])
    for member, chosen in zip(weight, (~pick, pick), strict=True):
        rows = chosen.nonzero().squeeze(1)
        product[rows] = gradient[rows] @ member.t()
    return product if gate is None else through_relu(product, chosen_rows(gate, pick))


def chosen_rows(stacked: Tensor, pick: Tensor) -> Tensor:
    """Each row's values from its own member, (B, n), out of (2, B, n) or (2, 1, n)."""
    return torch.where(pick.unsqueeze(-1), stacked[1], stacked[0])


def through_relu(gradient: Tensor, output: Tensor) -> Tensor:
    """From the gradient in the output of a ReLU to that in its input."""
    result: Tensor = torch.ops.aten.threshold_backward(gradient, output, 0.0)
    return result


def _stacked(inputs: Tensor, like: Tensor) -> Tensor:
    return inputs if inputs.dim() == 3 else inputs.expand(like.shape[0], -1, -1)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """A batched product in the precision of `left`, also where autocast computes it in another."""
    return torch.bmm(left, right).to(left.dtype)
