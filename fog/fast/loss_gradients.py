"""Derivatives of the minimised losses in `fog.algorithms.losses`, with the same names.

The hand-written backward pass (`fog.fast.backward`) starts from these. Each is the derivative of
the *mean* over the batch; tests compare them with autograd.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fog.networks.policy import GaussianAction, gaussian_log_density


def squared_td_error(values: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """In the values (E, B) of sum_e mean_b weight (Q_e - y)^2."""
    return (values - target) * (weight * (2.0 / weight.shape[-1]))


def expectile_loss(difference: Tensor, expectile: float) -> Tensor:
    """In V of the mean expectile loss of u = target - V, (B,)."""
    weight = (expectile - (difference < 0).to(difference.dtype)).abs()
    return weight * difference * (-2.0 / difference.shape[-1])


def combine(values: Tensor, pessimism: float) -> Tensor:
    """In the twin values (2, B) of the sum of their combinations; twins that tie share it."""
    lean = 0.5 * pessimism * torch.sign(values[0] - values[1])
    return torch.stack([0.5 - lean, 0.5 + lean])


def actor_loss(
    policy: GaussianAction, noise: Tensor, value_slope: Tensor, temperature: Tensor
) -> tuple[Tensor, Tensor]:
    """In mean and log std (B, act_dim) of the mean of alpha log pi(a | s) - Q(s, a).

    `value_slope` (B, act_dim) is the derivative of the mean of Q in the action. With a = tanh(u)
    and u = mean + std noise, the log density's derivative in u is 2 a, and in the log std at fixed
    u it is -1.
    """
    action = policy.action
    share = temperature / action.shape[0]
    before = 2.0 * share * action - value_slope * (1.0 - action.square())
    return before, before * policy.log_std.exp() * noise - share


def cloning_density(
    policy: GaussianAction, action: Tensor, bounds: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    """In mean and log std of the mean cloning density, which is flat where it is clipped."""
    inverse = (-policy.log_std).exp()
    z = (action - policy.mean) * inverse
    density = gaussian_log_density(policy.mean, policy.log_std, action)
    inside = (density >= bounds[0]) & (density <= bounds[1])
    share = inside.to(z.dtype) / z.numel()
    return share * z * inverse, share * (z.square() - 1.0)
