"""SimBa (Lee et al., 2025): SAC on networks with LayerNorm before each block, inputs normalised.

`update_` is the algorithm: observations are normalised by their running mean and variance, the
actor takes its step against the critics as they are, then the temperature, and the critics last,
with the new actor and temperature. There are two critics with their minimum where episodes can end
early, one critic elsewhere.

Read in the official code (SonyResearch/simba, commit 7d0358b), to which a test holds one update.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fog.algorithms import losses
from fog.algorithms.birth import born, learning_rates, temperature
from fog.algorithms.birth import parameters as parameters
from fog.algorithms.gradient import gradient
from fog.algorithms.hyperparameters import Hyperparameters, precision
from fog.algorithms.optimiser import Optimiser, adamw_, polyak_
from fog.events import Loss
from fog.networks import (
    GaussianAction,
    Look,
    Params,
    Tap,
    init_pre_norm,
    pre_norm_forward,
    sample_action,
)
from fog.records.sizes import NetworkSpec, Shapes
from fog.replay.batch import Batch
from fog.settings.config import AgentConfig

METRICS: tuple[str, ...] = ("critic_loss", "q", "td_error", "actor_loss", "entropy", "temperature")
"""Names of the entries of the metrics vector, in order."""
NOISES = 2
CRITICS: tuple[str, ...] = ("online",)
NETWORKS: tuple[str, ...] = ("online", "actor")
KEPT: tuple[str, ...] = ("normaliser",)
STOCHASTIC = True
COMPILES = True

FIRST_COUNT = 1e-4
"""Weight of the mean 0 and variance 1 that the statistics of observations begin with."""
EPSILON = 1e-8


class State(NamedTuple):
    """Parameters and optimisers of SimBa.

    `normaliser` holds mean, variance and count of the observations that training has acted on. It
    is data and not learned: a reset keeps it, evaluation and probes read it.
    """

    actor: Params
    critic: Params
    target: Params
    temperature: Params
    normaliser: Params
    actor_optimiser: Optimiser
    critic_optimiser: Optimiser
    temperature_optimiser: Optimiser


def update_(
    state: State, batch: Batch, noise: Tensor, bc_active: Tensor, hyper: Hyperparameters
) -> tuple[Tensor, Tensor]:
    """One update, written into the tensors of `state`; arguments and results as of `sac.update_`.

    Observations come as the environment gave them. The normaliser is not written to.
    """
    with torch.no_grad(), precision(hyper, noise):
        batch = normalised(state, batch)
        alpha = temperature(state)

        def actor_objective(actor: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            policy = act(actor, batch.obs, noise[1], hyper)
            return actor_loss(policy, state, batch, alpha).mean(), (policy.log_prob,)

        loss, (log_prob,), grads = gradient(actor_objective, state.actor)
        adamw_(state.actor, grads, state.actor_optimiser, hyper.weight_decay)

        def temperature_objective(params: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            entropy = -log_prob.mean()
            return losses.entropy_loss(params["log"], entropy, hyper.target_entropy), ()

        _, _, grads = gradient(temperature_objective, state.temperature)
        adamw_(state.temperature, grads, state.temperature_optimiser)

        target = soft_target(state, batch, noise[0], hyper)

        def critic_objective(critic: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            values = q_values(critic, batch.obs, batch.action)
            return (batch.weight * losses.critic_loss(values, target)).mean(), (values,)

        critic_loss, (values,), grads = gradient(critic_objective, state.critic)
        adamw_(state.critic, grads, state.critic_optimiser, hyper.weight_decay)
        polyak_(state.target, state.critic, hyper.polyak)

        td_error = losses.priority_error(values, target)
        metrics = [critic_loss, values.mean(), td_error.mean(), loss, -log_prob.mean(), alpha]
        return torch.stack(metrics), td_error


def soft_target(state: State, batch: Batch, noise: Tensor, hyper: Hyperparameters) -> Tensor:
    """Y = r + g m (min Q'(s', a') - alpha log pi(a' | s')) of a normalised batch, (B,)."""
    policy = act(state.actor, batch.next_obs, noise, hyper)
    values = q_values(state.target, batch.next_obs, policy.action)
    return losses.soft_target(
        batch.reward,
        batch.bootstrap,
        values.amin(dim=0),
        policy.log_prob,
        temperature(state),
        hyper.discount,
    )


def actor_loss(policy: GaussianAction, state: State, batch: Batch, alpha: Tensor) -> Tensor:
    """Alpha log pi(a | s) - min Q(s, a) of the policy's own actions in a normalised batch, (B,)."""
    value = q_values(state.critic, batch.obs, policy.action).amin(dim=0)
    return losses.actor_loss(policy.log_prob, value, alpha)


def q_values(critics: Params, obs: Tensor, action: Tensor, tap: Tap | None = None) -> Tensor:
    """Q(s, a) of every critic at normalised observations, (1, B) or (2, B)."""
    return pre_norm_forward(critics, torch.cat([obs, action], dim=-1), tap).squeeze(-1)


def gaussian(
    actor: Params, obs: Tensor, hyper: Hyperparameters, tap: Tap | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and log standard deviation before squashing, at normalised observations."""
    mean, free = pre_norm_forward(actor, obs, tap)[0].chunk(2, dim=-1)
    return mean, hyper.log_std(free)


def act(
    actor: Params, obs: Tensor, noise: Tensor, hyper: Hyperparameters, tap: Tap | None = None
) -> GaussianAction:
    """Actions that the policy samples with the given noise, at normalised observations."""
    return sample_action(*gaussian(actor, obs, hyper, tap), noise)


def normalise(state: State, obs: Tensor) -> Tensor:
    """Observations with today's mean taken off, over today's deviation."""
    mean, variance = state.normaliser["mean"], state.normaliser["variance"]
    return (obs - mean) / (variance + EPSILON).sqrt()


def normalised(state: State, batch: Batch) -> Batch:
    """The batch with both observations normalised."""
    return batch._replace(
        obs=normalise(state, batch.obs), next_obs=normalise(state, batch.next_obs)
    )


@torch.no_grad()
def observe_(state: State, obs: Tensor) -> None:
    """Add one observation to the running mean and variance (Welford)."""
    mean, variance, count = (state.normaliser[key] for key in ("mean", "variance", "count"))
    difference, total = obs - mean, count + 1
    variance.copy_((variance + difference.square() / total) * (count / total))
    mean.add_(difference / total)
    count.copy_(total)


def newborn(
    rng: np.random.Generator, spec: NetworkSpec, config: AgentConfig, device: torch.device
) -> State:
    """Fresh networks and optimisers, and no observation seen yet."""
    trees = {
        "actor": init_pre_norm(rng, spec.actor(), heads=2),
        "critic": init_critic(rng, spec.critic(spec.initial_depth)),
        "temperature": {"log": torch.tensor(math.log(config.initial_temperature))},
        "normaliser": {
            "mean": torch.zeros(spec.obs_dim),
            "variance": torch.ones(spec.obs_dim),
            "count": torch.tensor(FIRST_COUNT),
        },
    }
    return State(**born(trees, learning_rates(config), device))


def init_critic(rng: np.random.Generator, shapes: Shapes) -> Params:
    """Fresh values of a critic or of one block."""
    return init_pre_norm(rng, shapes)


# What acting and probes need of an algorithm, see `fog.algorithms.families`


def decide(state: State, obs: Tensor, noise: Tensor | None, hyper: Hyperparameters) -> Tensor:
    """Actions sampled with the noise; tanh of the mean without."""
    mean, log_std = policy(state, obs, hyper)
    return torch.tanh(mean if noise is None else mean + log_std.exp() * noise)


def evaluate(
    look: Look, state: State, obs: Tensor, action: Tensor, hyper: Hyperparameters
) -> Tensor:
    """Q(s, a) of critics with these parameters, (1, B) or (2, B)."""
    return q_values(look.params, normalise(state, obs), action, look.tap)


def policy(
    state: State, obs: Tensor, hyper: Hyperparameters, tap: Tap | None = None
) -> tuple[Tensor, Tensor]:
    """The actor's Gaussian before squashing."""
    return gaussian(state.actor, normalise(state, obs), hyper, tap)


@torch.no_grad()
def transition_losses(
    state: State, batch: Batch, noise: Tensor, hyper: Hyperparameters
) -> dict[str, Loss]:
    """The training loss of every transition, normalised with today's statistics; see `sac`."""
    with precision(hyper, noise):
        batch = normalised(state, batch)
        target = soft_target(state, batch, noise, hyper)
        values = q_values(state.critic, batch.obs, batch.action)
        return {"online": Loss(losses.critic_loss(values, target), target)}


def network_loss(
    look: Look, state: State, batch: Batch, noise: Tensor, bc_active: bool, hyper: Hyperparameters
) -> Tensor:
    """The training loss of one network per transition (B,); see `sac.network_loss`."""
    batch = normalised(state, batch)
    if look.target is None:
        drawn = act(look.params, batch.obs, noise, hyper, look.tap)
        return actor_loss(drawn, state, batch, temperature(state))
    values = q_values(look.params, batch.obs, batch.action, look.tap)
    return losses.critic_loss(values, look.target)
