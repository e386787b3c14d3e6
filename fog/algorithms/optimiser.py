"""AdamW and Polyak averaging on parameter trees.

`adamw_` and `polyak_` write into the trees they are given. Under `torch.compile` they are traced as
plain arithmetic that the compiler fuses with its neighbours; eagerly they are one fused kernel over
all tensors. Both follow `torch.optim.AdamW` (Loshchilov & Hutter): the decay is decoupled from the
gradient and scaled by the learning rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from fog.records.sizes import is_frozen

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8

Params = dict[str, Tensor]


class Optimiser(NamedTuple):
    """State of Adam: moments per parameter; step count and learning rate as scalar tensors.

    The learning rate is a tensor so that changing it at an expansion needs no new compilation.
    """

    mean: Params
    square: Params
    step: Tensor
    lr: Tensor


def init_optimiser(params: Mapping[str, Tensor], lr: float, device: torch.device) -> Optimiser:
    """A fresh optimiser for `params`, but for frozen ones."""
    trained = {name: value for name, value in params.items() if not is_frozen(name)}
    return Optimiser(
        mean={name: torch.zeros_like(value) for name, value in trained.items()},
        square={name: torch.zeros_like(value) for name, value in trained.items()},
        step=torch.zeros((), device=device),
        lr=torch.tensor(lr, dtype=torch.float32, device=device),
    )


@torch.no_grad()
def adamw_(
    params: Params,
    grads: Mapping[str, Tensor],
    state: Optimiser,
    weight_decay: float = 0.0,
    beta1: float = BETA1,
) -> None:
    """One AdamW step in place of what has a gradient; Adam where `weight_decay` is 0."""
    state.step.add_(1)
    names = list(grads)
    if torch.compiler.is_compiling():
        bias1 = 1 - torch.pow(beta1, state.step.double())
        bias2 = 1 - torch.pow(BETA2, state.step.double())
        size = _once((state.lr / bias1).float())
        keep = 1 - weight_decay * state.lr
        root = _once(bias2.sqrt().float())
        for name in names:
            mean, square, grad = state.mean[name], state.square[name], grads[name]
            new_mean = torch.lerp(mean, grad, 1 - beta1)
            new_square = BETA2 * square + (1 - BETA2) * grad.square()
            change = size * new_mean / (new_square.sqrt() / root + EPSILON)
            decayed = params[name] * keep if weight_decay else params[name]
            params[name].copy_(decayed - change)
            mean.copy_(new_mean)
            square.copy_(new_square)
        return
    torch._fused_adamw_(
        [params[name] for name in names],
        [grads[name] for name in names],
        [state.mean[name] for name in names],
        [state.square[name] for name in names],
        [],
        [state.step] * len(names),
        lr=state.lr,
        beta1=beta1,
        beta2=BETA2,
        weight_decay=weight_decay,
        eps=EPSILON,
        amsgrad=False,
        maximize=False,
    )


def _once(scalar: Tensor) -> Tensor:
    """The same number, which the compiler then computes once and not for every parameter.

    It writes what a scalar is made of, powers and roots, into each loop that reads the scalar; only
    the result of a reduction, if it is no tiny one, gets a place of its own.
    """
    return scalar.expand(16).amax()


@torch.no_grad()
def polyak_(target: Params, online: Mapping[str, Tensor], rate: float) -> None:
    """Move targets in place: target <- target + rate (online - target)."""
    if torch.compiler.is_compiling():
        for name, value in target.items():
            value.copy_(torch.lerp(value, online[name], rate))
        return
    torch._foreach_lerp_(list(target.values()), [online[name] for name in target], rate)
