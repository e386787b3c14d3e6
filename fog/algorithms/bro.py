"""BRO (Nauman et al., 2024): quantile critics of residual blocks, and an actor that explores.

`update_` is the algorithm: twin critics that learn N quantiles of the return, an actor like SAC's
against their mean, and beside it an optimistic actor, kept near the first by a KL term, that
gathers the experience. How optimistic it is and how closely it is kept are two dual variables that
learn to hold the KL at its target. Order of the steps: critics, targets, actor, optimistic actor,
temperature, dual variables; each sees those before it as they are after their step.

Read in the official code (naumix/BiggerRegularizedOptimistic, commit 5870a13), to which a test
holds one update. Unlike there, a reset draws fresh weights.
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
from fog.algorithms.sac import observe_ as observe_
from fog.events import Loss
from fog.networks import (
    GaussianAction,
    Look,
    Params,
    Tap,
    critic_forward,
    init_scaled,
    sample_action,
)
from fog.networks import init_critic as init_critic
from fog.records.sizes import NetworkSpec
from fog.replay.batch import Batch
from fog.settings.config import AgentConfig

METRICS: tuple[str, ...] = (
    *("critic_loss", "q", "td_error", "actor_loss", "entropy", "temperature"),
    *("explorer_loss", "explorer_kl", "optimism", "regulariser"),
)
"""Names of the entries of the metrics vector, in order."""
NOISES = 3
CRITICS: tuple[str, ...] = ("online",)
NETWORKS: tuple[str, ...] = ("online", "actor")
KEPT: tuple[str, ...] = ()
STOCHASTIC = True
COMPILES = True

OPTIMISM, REGULARISER = 1.0, 0.25
"""Dual variables at birth: how much of the twins' disagreement is added, the weight of the KL."""
KL_TARGET = 0.05
"""Of the optimistic actor from the actor, for each dimension of an action."""
SPREAD = 0.75
"""The optimistic actor's standard deviation over the actor's."""
DUAL_LR, DUAL_BETA1 = 3e-5, 0.5
"""Adam of the dual variables; the temperature has the same beta."""
LOG_BOUNDS = (-10.0, 7.5)
"""Of the logarithm of a dual variable, kept by tanh."""
HEAD_GAINS = (math.sqrt(2.0), 1.0)
"""Initial gains of the actor's heads: mean, log standard deviation."""
SHIFT_GAIN = 0.01


class State(NamedTuple):
    """Parameters and optimisers of BRO; `explorer` is the optimistic actor."""

    actor: Params
    critic: Params
    target: Params
    explorer: Params
    temperature: Params
    optimism: Params
    regulariser: Params
    actor_optimiser: Optimiser
    critic_optimiser: Optimiser
    explorer_optimiser: Optimiser
    temperature_optimiser: Optimiser
    optimism_optimiser: Optimiser
    regulariser_optimiser: Optimiser


def update_(
    state: State, batch: Batch, noise: Tensor, bc_active: Tensor, hyper: Hyperparameters
) -> tuple[Tensor, Tensor]:
    """One update, written into the tensors of `state`; arguments and results as of `sac.update_`.

    Noise is (3, B, act_dim), for the next action, the policy's action and the optimistic actor's;
    with two, both actors share the second. TD errors are those of the means.
    """
    with torch.no_grad(), precision(hyper, noise):
        alpha = temperature(state)
        target = quantile_target(state, batch, noise[0], hyper)

        def critic_objective(critic: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            values = quantiles(critic, batch.obs, batch.action, hyper)
            return (batch.weight * losses.quantile_loss(values, target)).mean(), (values,)

        critic_loss, (values,), grads = gradient(critic_objective, state.critic)
        adamw_(state.critic, grads, state.critic_optimiser, hyper.weight_decay)
        polyak_(state.target, state.critic, hyper.polyak)

        def actor_objective(actor: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            policy = act(actor, batch.obs, noise[1], hyper)
            return actor_loss(policy, state, batch, alpha, hyper).mean(), (policy.log_prob,)

        loss, (log_prob,), grads = gradient(actor_objective, state.actor)
        adamw_(state.actor, grads, state.actor_optimiser, hyper.weight_decay)

        mean, log_std = gaussian(state.actor, batch.obs, hyper)

        def explorer_objective(explorer: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            shift = shift_of(explorer, batch.obs, mean, hyper)
            # Of the two Gaussians with the actor's own spread; 0.75 of it is left out of account.
            kl = (0.5 * (shift * (-log_std).exp()).square()).sum(dim=-1).mean()
            action = torch.tanh(mean + shift + SPREAD * log_std.exp() * noise[-1])
            twins = quantiles(state.critic, batch.obs, action, hyper)
            hope = twins.mean(dim=0) + 0.5 * optimism(state) * (twins[0] - twins[1]).abs()
            return -hope.mean() + regulariser(state) * kl, (kl,)

        explorer_loss, (kl,), grads = gradient(explorer_objective, state.explorer)
        adamw_(state.explorer, grads, state.explorer_optimiser, hyper.weight_decay)

        td_error = losses.priority_error(values.mean(dim=-1), target.mean(dim=-1))
        metrics = [critic_loss, values.mean(), td_error.mean(), loss, -log_prob.mean(), alpha]
        metrics += [explorer_loss, kl, optimism(state), regulariser(state)]
        dual_steps_(state, -log_prob.mean(), kl / batch.action.shape[-1], hyper)
        return torch.stack(metrics), td_error


def dual_steps_(state: State, entropy: Tensor, kl: Tensor, hyper: Hyperparameters) -> None:
    """Move temperature, optimism and regulariser; `kl` is that of one dimension."""

    def temperature_loss(params: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
        return losses.entropy_loss(params["log"], entropy, hyper.target_entropy), ()

    def optimism_loss(params: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
        return (bounded(params["free"]) - hyper.pessimism) * (kl - KL_TARGET), ()

    def regulariser_loss(params: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
        return -bounded(params["free"]) * (kl - KL_TARGET), ()

    for params, optimiser, loss in (
        (state.temperature, state.temperature_optimiser, temperature_loss),
        (state.optimism, state.optimism_optimiser, optimism_loss),
        (state.regulariser, state.regulariser_optimiser, regulariser_loss),
    ):
        adamw_(params, gradient(loss, params)[2], optimiser, beta1=DUAL_BETA1)


def quantile_target(state: State, batch: Batch, noise: Tensor, hyper: Hyperparameters) -> Tensor:
    """Y_j = r + g m (z'_j - alpha log pi(a' | s')) for every quantile j, (B, N)."""
    policy = act(state.actor, batch.next_obs, noise, hyper)
    values = quantiles(state.target, batch.next_obs, policy.action, hyper)
    return losses.soft_target(
        batch.reward[:, None],
        batch.bootstrap[:, None],
        losses.combine(values, hyper.pessimism),
        policy.log_prob[:, None],
        temperature(state),
        hyper.discount,
    )


def actor_loss(
    policy: GaussianAction, state: State, batch: Batch, alpha: Tensor, hyper: Hyperparameters
) -> Tensor:
    """Alpha log pi(a | s) - Q(s, a) of the policy's own actions, Q the mean of its quantiles."""
    values = quantiles(state.critic, batch.obs, policy.action, hyper)
    value = losses.combine(values, hyper.pessimism).mean(dim=-1)
    return losses.actor_loss(policy.log_prob, value, alpha)


def quantiles(
    critics: Params, obs: Tensor, action: Tensor, hyper: Hyperparameters, tap: Tap | None = None
) -> Tensor:
    """Quantiles of the return of (s, a), (2, B, N)."""
    return critic_forward(critics, torch.cat([obs, action], dim=-1), hyper.activation, tap)


def gaussian(
    actor: Params, obs: Tensor, hyper: Hyperparameters, tap: Tap | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and log standard deviation before squashing, (B, act_dim) each."""
    mean, free = critic_forward(actor, obs, hyper.activation, tap)[0].chunk(2, dim=-1)
    return mean, hyper.log_std(free)


def act(
    actor: Params, obs: Tensor, noise: Tensor, hyper: Hyperparameters, tap: Tap | None = None
) -> GaussianAction:
    """Actions that the policy samples with the given noise."""
    return sample_action(*gaussian(actor, obs, hyper, tap), noise)


def shift_of(explorer: Params, obs: Tensor, mean: Tensor, hyper: Hyperparameters) -> Tensor:
    """How far the optimistic actor moves the actor's mean, (B, act_dim)."""
    shift = critic_forward(explorer, torch.cat([obs, mean], dim=-1), hyper.activation)
    return shift.reshape(mean.shape)


def optimism(state: State) -> Tensor:
    """The dual variable b: how much of the twins' disagreement the optimistic actor hopes for."""
    return bounded(state.optimism["free"])


def regulariser(state: State) -> Tensor:
    """The dual variable w: how much the optimistic actor's distance from the actor costs."""
    return bounded(state.regulariser["free"])


def bounded(free: Tensor) -> Tensor:
    """A positive number whose logarithm is kept within `LOG_BOUNDS`."""
    low, high = LOG_BOUNDS
    return (low + 0.5 * (high - low) * (1.0 + torch.tanh(free))).exp()


def newborn(
    rng: np.random.Generator, spec: NetworkSpec, config: AgentConfig, device: torch.device
) -> State:
    """Fresh networks and optimisers: an agent at birth, and after every reset."""
    trees = {
        "actor": init_scaled(rng, spec.actor(), HEAD_GAINS),
        "critic": init_critic(rng, spec.critic(spec.initial_depth)),
        "explorer": init_scaled(rng, spec.explorer(), (SHIFT_GAIN,)),
        "temperature": {"log": torch.tensor(math.log(config.initial_temperature))},
        "optimism": {"free": _free(OPTIMISM)},
        "regulariser": {"free": _free(REGULARISER)},
    }
    own = {"explorer": config.actor_lr, "optimism": DUAL_LR, "regulariser": DUAL_LR}
    return State(**born(trees, learning_rates(config) | own, device))


def _free(value: float) -> Tensor:
    """What `bounded` makes `value` of."""
    low, high = LOG_BOUNDS
    return torch.tensor(math.atanh(2.0 * (math.log(value) - low) / (high - low) - 1.0))


# What acting and probes need of an algorithm, see `fog.algorithms.families`


def decide(state: State, obs: Tensor, noise: Tensor | None, hyper: Hyperparameters) -> Tensor:
    """Actions of the optimistic actor with the noise; tanh of the actor's mean without."""
    mean, log_std = gaussian(state.actor, obs, hyper)
    if noise is None:
        return torch.tanh(mean)
    shift = shift_of(state.explorer, obs, mean, hyper)
    return torch.tanh(mean + shift + SPREAD * log_std.exp() * noise)


def evaluate(
    look: Look, state: State, obs: Tensor, action: Tensor, hyper: Hyperparameters
) -> Tensor:
    """Q(s, a), the mean of the quantiles, of critics with these parameters, (2, B)."""
    return quantiles(look.params, obs, action, hyper, look.tap).mean(dim=-1)


def policy(
    state: State, obs: Tensor, hyper: Hyperparameters, tap: Tap | None = None
) -> tuple[Tensor, Tensor]:
    """The actor's Gaussian, which evaluation takes the mean of."""
    return gaussian(state.actor, obs, hyper, tap)


@torch.no_grad()
def transition_losses(
    state: State, batch: Batch, noise: Tensor, hyper: Hyperparameters
) -> dict[str, Loss]:
    """The training loss of every transition, and the squared error of the critics' means."""
    with precision(hyper, noise):
        target = quantile_target(state, batch, noise, hyper)
        values = quantiles(state.critic, batch.obs, batch.action, hyper)
        mean = target.mean(dim=-1)
        squared = losses.critic_loss(values.mean(dim=-1), mean)
        return {"online": Loss(losses.quantile_loss(values, target), mean, squared, target)}


def network_loss(
    look: Look, state: State, batch: Batch, noise: Tensor, bc_active: bool, hyper: Hyperparameters
) -> Tensor:
    """The training loss of one network per transition (B,); see `sac.network_loss`."""
    if look.target is None:
        drawn = act(look.params, batch.obs, noise, hyper, look.tap)
        return actor_loss(drawn, state, batch, temperature(state), hyper)
    values = quantiles(look.params, batch.obs, batch.action, hyper, look.tap)
    return losses.quantile_loss(values, look.target)
