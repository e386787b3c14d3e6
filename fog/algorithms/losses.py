"""The losses of SAC, OBAC and relatives as pure functions: training and probes call the same ones.

Every loss is per transition (shape (B,)); the update takes the mean, a whole-buffer probe keeps the
entries. Values of an ensemble have shape (E, B). Section and item numbers refer to the OBAC and FoG
papers as docs/agents.md cites them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fog.networks.policy import gaussian_log_density


def combine(values: Tensor, pessimism: float) -> Tensor:
    """Twin values (2, B) to one: (Q1 + Q2) / 2 - p |Q1 - Q2| / 2.

    p = 1 is the minimum and p = 0 the mean (Moskovitz et al.; FoG uses 0 on Meta-World).
    """
    if pessimism == 1.0:
        return torch.minimum(values[0], values[1])
    mean = 0.5 * (values[0] + values[1])
    return mean if pessimism == 0.0 else mean - 0.5 * pessimism * (values[0] - values[1]).abs()


def soft_target(
    reward: Tensor,
    bootstrap: Tensor,
    next_value: Tensor,
    next_log_prob: Tensor,
    temperature: Tensor,
    discount: float,
) -> Tensor:
    """SAC's target y = r + g m (Q'(s', a') - alpha log pi(a' | s')), `next_value` combined."""
    return reward + discount * bootstrap * (next_value - temperature * next_log_prob)


def offline_target(
    reward: Tensor, bootstrap: Tensor, next_value: Tensor, discount: float
) -> Tensor:
    """OBAC's offline target y_b = r + g m V(s'): no entropy, no target network for V."""
    return reward + discount * bootstrap * next_value


def squared_td_error(values: Tensor, target: Tensor) -> Tensor:
    """(Q_e(s, a) - y)^2 of every member, (E, B); `target` is (B,) or (E, B)."""
    return (values - target).square()


def critic_loss(values: Tensor, target: Tensor) -> Tensor:
    """Loss of twin critics per transition: the sum of their squared TD errors, (B,)."""
    return squared_td_error(values, target).sum(dim=0)


def priority_error(values: Tensor, target: Tensor) -> Tensor:
    """|TD error| for prioritised replay: the larger of the twins', (B,)."""
    return (values - target).abs().amax(dim=0)


def expectile_loss(difference: Tensor, expectile: float) -> Tensor:
    """|q - 1(u < 0)| u^2 of u = min_j Qb'_j(s, a) - V(s), (B,)."""
    weight = (expectile - (difference < 0).to(difference.dtype)).abs()
    return weight * difference.square()


def cloning_density(
    mean: Tensor, log_std: Tensor, action: Tensor, bounds: tuple[float, float]
) -> Tensor:
    """OBAC's behaviour-cloning term D per transition, (B,).

    D = mean over action dimensions of clip(log N(a; mu(s), sigma(s)), bounds). As in OBAC's code,
    the Gaussian before squashing is evaluated at the squashed action of the dataset, each dimension
    is clipped to the bounds of the log standard deviation (no gradient where clipped), and
    dimensions are averaged, not summed.
    """
    return gaussian_log_density(mean, log_std, action).clamp(*bounds).mean(dim=-1)


def cloning_gate(policy_value: Tensor, offline_value: Tensor) -> Tensor:
    """One boolean for the whole batch: the offline value beats the policy's, strictly.

    The policy's is the combined online Q(s, a_pi), the offline one min_j Qb_j(s, a), (B,) each.
    """
    return policy_value.mean() < offline_value.mean()


def actor_loss(log_prob: Tensor, value: Tensor, temperature: Tensor) -> Tensor:
    """SAC's actor loss alpha log pi(a | s) - Q(s, a), (B,), `value` combined."""
    return temperature * log_prob - value


def temperature_loss(log_temperature: Tensor, log_prob: Tensor, target_entropy: float) -> Tensor:
    """-log(alpha) (log pi(a | s) + H_target), (B,); the log density is a constant here."""
    return -log_temperature * (log_prob.detach() + target_entropy)


def entropy_loss(log_temperature: Tensor, entropy: Tensor, target_entropy: float) -> Tensor:
    """Alpha (H - H_target), a scalar: the form of BRO and SimBa, whose gradient carries alpha."""
    return log_temperature.exp() * (entropy - target_entropy)


def quantile_loss(values: Tensor, target: Tensor) -> Tensor:
    """Loss of twin critics per transition, (B,): quantile regression with a Huber loss.

    Values z are (2, B, N), targets y (B, N). Quantile i of a critic is set against every quantile j
    of the target: with d = y_j - z_i the loss is |tau_i - 1(d < 0)| Huber(d), added up over i and
    averaged over j. It is thus about N times the loss of one quantile, and BRO's learning rates
    belong to this scale.
    """
    count = values.shape[-1]
    taus = (torch.arange(count, device=values.device, dtype=values.dtype) + 0.5) / count
    difference = target[:, None, :] - values[..., None]
    size = difference.abs()
    huber = torch.where(size <= 1.0, 0.5 * difference.square(), size - 0.5)
    weight = (taus[:, None] - (difference.detach() < 0).to(values.dtype)).abs()
    return (weight * huber).sum(dim=-2).mean(dim=-1).sum(dim=0)
