"""The topology of Neuroplastic Expansion: which weights are active, and how that changes."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from fog.algorithms.optimiser import Optimiser, adamw_
from fog.networks import Params
from fog.records.sizes import Shapes
from fog.records.sparsity import SPARSITY, kept

EVERY = 100
"""Updates of a network from one step of its topology to the next."""
GROW, PRUNE = 0.008, 0.4
"""Unmasked at a step, as a share of the room at birth; masked, as a share of those unmasked."""
END = 0.25
"""Share of masked weights at which growth ends."""
EXCHANGE, EXCHANGE_END = 0.2, 5_975_000
"""Afterwards: share of the active weights that is exchanged at first, and the update at which its
cosine reaches zero, that of six million steps."""


def learn_(
    params: Params, masks: Params, grads: Params, optimiser: Optimiser, clock: Params, name: str
) -> None:
    """One step of a network: of its optimiser, or every 100th time of its topology."""
    calls, ended = clock[f"{name}_calls"], clock[f"{name}_ended"]
    calls.add_(1)
    if int(calls) % EVERY:
        masked = {key: grad * masks[key] if key in masks else grad for key, grad in grads.items()}
        adamw_(params, masked, optimiser)
        mask_(params, masks)
        return
    shapes = {key: tuple(tensor.shape) for key, tensor in params.items()}
    steps = last_step(shapes) if ended else int(calls) // EVERY - 1
    plan, active = growth_of(shapes), active_after(shapes, steps)
    for key, mask in masks.items():
        if ended:
            turn = 1.0 + math.cos(math.pi * min(1.0, int(calls) / EXCHANGE_END))
            grown = pruned = int(active[key] * EXCHANGE / 2.0 * turn)
        else:
            grown, pruned = plan[key]
        for member in range(len(mask)):
            weight, grad = params[key][member], grads[key][member]
            change_(weight, mask[member], grad, active[key], grown, pruned)
    if not ended and is_grown(shapes, steps + 1):
        ended.fill_(1.0)
        calls.zero_()


def growth_of(shapes: Shapes) -> dict[str, tuple[int, int]]:
    """By layer, how many weights of a member a step of growth unmasks, and how many it masks."""
    found = {}
    for name, active in kept(shapes).items():
        grown = max(0, int(GROW * (SPARSITY * math.prod(shapes[name][1:]) - active)))
        found[name] = (grown, int(PRUNE * grown))
    return found


def active_after(shapes: Shapes, steps: int) -> dict[str, int]:
    """Active weights of a member by layer, after so many steps of growth.

    Counted from the schedule: to sum a mask would make every step wait for the device.
    """
    plan, rooms = growth_of(shapes), {name: math.prod(shapes[name][1:]) for name in kept(shapes)}
    return {
        name: min(active + steps * (plan[name][0] - plan[name][1]), rooms[name])
        for name, active in kept(shapes).items()
    }


def is_grown(shapes: Shapes, steps: int) -> bool:
    """Whether growth ends with this step: few enough weights are masked."""
    every = sum(math.prod(shape) for name, shape in shapes.items() if _is_weight(name))
    masked = sum(
        math.prod(shapes[name]) - shapes[name][0] * active
        for name, active in active_after(shapes, steps).items()
    )
    return masked / every <= END


def last_step(shapes: Shapes) -> int:
    """The number of the step with which growth has ended."""
    return next(steps for steps in itertools.count(1) if is_grown(shapes, steps))


def change_(
    weight: Tensor, mask: Tensor, grad: Tensor, active: int, grown: int, pruned: int
) -> None:
    """Mask the smallest active weights, then unmask those of the rest with the largest gradients.

    A weight that was masked begins at 0. One that is masked and unmasked again keeps its value.
    """
    before = mask.flatten() > 0
    size = torch.where(before, weight.flatten().abs(), -1.0)
    chosen = torch.zeros_like(before)
    left = active - pruned
    chosen[size.topk(left).indices] = True
    slope = torch.where(chosen, -1.0, grad.flatten().abs())
    chosen[slope.topk(min(grown, chosen.numel() - left)).indices] = True
    mask.copy_(chosen.view(mask.shape))
    weight.mul_(mask)


def mask_(params: Params, masks: Params) -> None:
    """Set masked weights to zero."""
    for name, mask in masks.items():
        params[name].mul_(mask)


def masked_share(params: Params, masks: Params) -> Tensor:
    """Masked weights over all weights and LayerNorm scales."""
    every = sum(value.numel() for name, value in params.items() if _is_weight(name))
    return torch.stack([mask.numel() - mask.sum() for mask in masks.values()]).sum() / every


def _is_weight(name: str) -> bool:
    return name.endswith((".weight", ".scale"))
