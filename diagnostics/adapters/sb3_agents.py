"""Agents of Stable-Baselines3 and sb3-contrib under observation: their own targets and losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from stable_baselines3 import DDPG, SAC, TD3
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import Tensor

from diagnostics.adapters.modules import ObservedModules
from diagnostics.adapters.parts import Policy, squared_error
from diagnostics.adapters.quantiles import ObservedQuantiles
from fog.errors import UserError
from fog.events import Transitions

SERVED = "SAC, TD3, DDPG, and sb3-contrib's TQC and CrossQ"


def observed_by(model: OffPolicyAlgorithm) -> ObservedModules:
    """A model as an observed agent, with its own targets and losses but the caller's noise.

    CrossQ is measured with its batch statistics fixed, in evaluation mode: its loss is that of the
    critic that acts, not of the one that normalises by the batch it trains on.

    Raises:
        UserError: another algorithm, a policy that is not an MLP, or gSDE exploration.
    """
    kind = type(model).__name__
    # By name, because sb3-contrib need not be installed.
    contributed = kind in ("TQC", "CrossQ") and type(model).__module__.startswith("sb3_contrib")
    if type(model) not in (SAC, TD3, DDPG) and not contributed:
        raise UserError(f"no probes for {kind}: {SERVED} are supported")
    space = type(model.observation_space).__name__
    if space == "Dict":
        raise UserError(
            "probes cannot read observations that are dictionaries: wrap the environment in "
            "FlattenObservation"
        )
    if type(model.critic.features_extractor) is not FlattenExtractor:
        raise UserError("probes need an MlpPolicy: this one has a features extractor of its own")
    if getattr(model.actor, "use_sde", False):
        raise UserError("probes cannot repeat gSDE exploration noise: use use_sde=False")
    if getattr(model, "n_steps", 1) > 1:
        raise UserError("probes measure one-step targets: use n_steps=1")
    act_dim = int(np.prod(model.action_space.shape))

    def critic_lr() -> float:
        return float(model.critic.optimizer.param_groups[0]["lr"])

    if isinstance(model, TD3):
        return ObservedModules(
            model.critic.q_networks,
            lambda batch, noise: _td3_target(model, batch, noise),
            act_dim,
            policy=_td3_policy(model),
            critic_lr=critic_lr,
        )
    if kind == "TQC":
        return ObservedQuantiles(
            model.critic.q_networks,
            lambda batch, noise: _tqc_target(model, batch, noise),
            act_dim,
            _tqc_loss,
            policy=_sac_policy(model),
            critic_lr=critic_lr,
        )
    return ObservedModules(
        model.critic.q_networks,
        lambda batch, noise: _sac_target(model, batch, noise),
        act_dim,
        policy=_sac_policy(model),
        loss=lambda values, target: 0.5 * squared_error(values, target),
        critic_lr=critic_lr,
    )


def _td3_target(model: TD3, batch: Transitions, noise: Tensor) -> Tensor:
    clip = model.target_noise_clip
    smooth = (noise * model.target_policy_noise).clamp(-clip, clip)
    action = (model.actor_target(batch.next_obs) + smooth).clamp(-1, 1)
    values = torch.cat(model.critic_target(batch.next_obs, action), dim=1)
    return batch.reward + float(model.gamma) * batch.bootstrap * values.amin(dim=1)


def _td3_policy(model: TD3) -> Policy:
    def loss(batch: Transitions, noise: Tensor) -> Tensor:
        value: Tensor = model.critic.q1_forward(batch.obs, model.actor(batch.obs))
        return -value[:, 0]

    return Policy(model.actor, model.actor, loss)


def _sac_target(model: Any, batch: Transitions, noise: Tensor) -> Tensor:
    action, log_prob = _sac_action(model, batch.next_obs, noise)
    # CrossQ has no target network: its critic is its own.
    critic = getattr(model, "critic_target", model.critic)
    value = torch.cat(critic(batch.next_obs, action), dim=1).amin(dim=1)
    value = value - _temperature(model) * log_prob
    return batch.reward + float(model.gamma) * batch.bootstrap * value


def _tqc_target(model: Any, batch: Transitions, noise: Tensor) -> Tensor:
    """Quantiles of all target critics together, without the largest."""
    action, log_prob = _sac_action(model, batch.next_obs, noise)
    kept = model.critic.quantiles_total
    kept -= model.top_quantiles_to_drop_per_net * model.critic.n_critics
    quantiles = model.critic_target(batch.next_obs, action).flatten(1).sort(dim=1).values[:, :kept]
    value = quantiles - (_temperature(model) * log_prob)[:, None]
    target: Tensor = batch.reward[:, None] + model.gamma * batch.bootstrap[:, None] * value
    return target


def _tqc_loss(quantiles: Tensor, target: Tensor) -> Tensor:
    """TQC's quantile Huber loss (B,), a mean over members, quantiles and targets."""
    count = quantiles.shape[2]
    shares = (torch.arange(count, device=quantiles.device, dtype=quantiles.dtype) + 0.5) / count
    # (members, B, quantiles, targets)
    delta = target[None, :, None, :] - quantiles[..., None]
    size = delta.abs()
    huber = torch.where(size > 1, size - 0.5, 0.5 * delta.square())
    weight = (shares[:, None] - (delta.detach() < 0).to(delta.dtype)).abs()
    return (weight * huber).mean(dim=(0, 2, 3))


def _sac_policy(model: Any) -> Policy:
    def loss(batch: Transitions, noise: Tensor) -> Tensor:
        action, log_prob = _sac_action(model, batch.obs, noise)
        return _temperature(model) * log_prob - _acting_value(model, batch.obs, action)

    def action(obs: Tensor) -> Tensor:
        return torch.tanh(model.actor.get_action_dist_params(obs)[0])

    def bonus(obs: Tensor, noise: Tensor) -> Tensor:
        return -_temperature(model) * _sac_action(model, obs, noise)[1]

    def gaussian(obs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std, _ = model.actor.get_action_dist_params(obs)
        return mean, log_std

    return Policy(model.actor, action, loss, bonus, gaussian)


def _acting_value(model: Any, obs: Tensor, action: Tensor) -> Tensor:
    """What the actor maximises: the smaller twin, or TQC's mean of all quantiles."""
    values = model.critic(obs, action)
    if isinstance(values, Tensor):
        return values.mean(dim=(1, 2))
    return torch.cat(values, dim=1).amin(dim=1)


def _sac_action(model: Any, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """SB3's squashed Gaussian with the caller's noise; its own constant keeps the log finite."""
    mean, log_std, _ = model.actor.get_action_dist_params(obs)
    action = torch.tanh(mean + log_std.exp() * noise)
    gaussian = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
    return action, (gaussian - torch.log(1 - action.square() + 1e-6)).sum(dim=1)


def _temperature(model: Any) -> Tensor:
    if model.log_ent_coef is not None:
        temperature: Tensor = model.log_ent_coef.detach().exp()
        return temperature
    return torch.as_tensor(model.ent_coef_tensor)
