"""Gradients of functional losses, eagerly or while tracing for the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from fog.networks import Params
from fog.records.sizes import is_frozen

LossFunction: TypeAlias = Callable[[Params], tuple[Tensor, tuple[Tensor, ...]]]
"""Parameters to (scalar loss, values that the caller wants to keep)."""


def gradient(loss: LossFunction, params: Params) -> tuple[Tensor, tuple[Tensor, ...], Params]:
    """Loss, kept values and gradient with respect to `params` only.

    Whatever else the loss closes over gets no gradient, so none is computed for it: the actor loss
    costs the critic no weight gradients. Eagerly, plain autograd is used because `torch.func`
    wraps every operation at a cost that shows at small widths; the compiler traces `torch.func`.
    Frozen parts of `params` (plasticity injection) get none either.
    """
    frozen = {name: tensor for name, tensor in params.items() if is_frozen(name)}
    trained = {name: tensor for name, tensor in params.items() if name not in frozen}
    if torch.compiler.is_compiling():

        def whole(part: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            return loss(part | frozen)

        grads, (value, kept) = torch.func.grad_and_value(whole, has_aux=True)(trained)
        return value, kept, grads
    leaves = {name: tensor.detach().requires_grad_() for name, tensor in trained.items()}
    with torch.enable_grad():
        value, kept = loss(leaves | frozen)
        grads = torch.autograd.grad(value, list(leaves.values()))
    kept = tuple(tensor.detach() for tensor in kept)
    return value.detach(), kept, dict(zip(leaves, grads, strict=True))
