"""What an adapter needs to know of torch modules: a policy, a loss, and how not to disturb them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from diagnostics.adapters.taps import require_deterministic
from fog.errors import UserError
from fog.events import Transitions


@dataclass(frozen=True)
class Policy:
    """What probes can ask of a policy.

    Attributes:
        module: holds its parameters and hidden layers.
        action: deterministic actions (B, act_dim) of observations, as the critic takes them.
        loss: training loss per transition (B,), from transitions and noise; differentiable.
        entropy_bonus: -alpha log pi of a sampled action (B,); None without entropy terms.
        gaussian: mean and log std before squashing, (B, act_dim) each; None, or a function that
            returns None, if there is none.
    """

    module: nn.Module
    action: Callable[[Tensor], Tensor]
    loss: Callable[[Transitions, Tensor], Tensor]
    entropy_bonus: Callable[[Tensor, Tensor], Tensor] | None = None
    gaussian: Callable[[Tensor], tuple[Tensor, Tensor] | None] | None = None


def squared_error(values: Tensor, target: Tensor) -> Tensor:
    """Sum over members of (Q - y)^2, (B,)."""
    return (values - target).square().sum(dim=0)


def reinitialise(module: nn.Module) -> None:
    """Call `reset_parameters` wherever there are parameters, as torch does at birth.

    Raises:
        UserError: a submodule has parameters and no such method, or keeps running statistics.
    """
    for name, part in module.named_modules():
        if keeps_statistics(part):
            raise UserError(
                f"{name} ({type(part).__name__}) keeps running statistics, which a fresh critic "
                "would not have: leave warmstart out"
            )
        if not list(part.parameters(recurse=False)):
            continue
        reset = getattr(part, "reset_parameters", None)
        if reset is None:
            raise UserError(
                f"{name or 'the critic'} ({type(part).__name__}) has no reset_parameters: pass "
                "`init` to ObservedModules, or leave warmstart out"
            )
        reset()


def require_evaluation_mode(module: nn.Module) -> None:
    """Refuse a module that looking at would change.

    Raises:
        UserError: dropout or any normalisation with running statistics is in training mode.
    """
    require_deterministic(module)
    for name, part in module.named_modules():
        if part.training and keeps_statistics(part):
            raise UserError(
                f"{name} ({type(part).__name__}) is in training mode, where looking changes it: "
                "call .eval() before probes measure"
            )


def keeps_statistics(part: nn.Module) -> bool:
    """Whether a layer normalises with running statistics of batches.

    By its name too: libraries have batch normalisations of their own (CrossQ's BatchRenorm).
    """
    named = type(part).__name__.lower()
    own = any(True for _ in part.buffers(recurse=False))
    return own and "batch" in named and "norm" in named


def joined(obs: Tensor, action: Tensor) -> tuple[Tensor, ...]:
    """What a member is called with: one tensor [obs, action]."""
    return (torch.cat([obs, action], dim=-1),)


def one_value(output: Tensor, name: str) -> Tensor:
    """A critic's output as (B,).

    Raises:
        UserError: it is not one value for each transition.
    """
    if output.dim() not in (1, 2) or output.shape[1:] not in ((), (1,)):
        raise UserError(
            f"{name} returned shape {tuple(output.shape)}: it must return one value for each "
            "transition, (B,) or (B, 1)"
        )
    return output.reshape(-1)


def require_linear(module: nn.Module) -> None:
    """Refuse a network without a linear layer, whose features cannot be known."""
    if not any(isinstance(part, nn.Linear) for part in module.modules()):
        raise UserError(f"{described(module)} has no nn.Linear layer to look at")


def described(module: nn.Module) -> str:
    """A network's name for messages."""
    return str(getattr(module, "described", type(module).__name__))
