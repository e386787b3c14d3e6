"""SAC (Haarnoja et al., 2018): the backbone of the motivating example and of FoG-SAC.

`update_` is the algorithm. What the losses are lies in `fog.algorithms.losses`, so that probes
measure exactly what is trained. The critics take their step before the actor, which therefore sees
the new ones; the target networks follow last.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fog.algorithms import losses
from fog.algorithms.birth import temperature as temperature
from fog.algorithms.gradient import gradient
from fog.algorithms.growth import newborn as newborn
from fog.algorithms.hyperparameters import Hyperparameters, precision
from fog.algorithms.optimiser import adamw_, polyak_
from fog.algorithms.state import State
from fog.events import Loss
from fog.networks import (
    GaussianAction,
    Look,
    Params,
    Tap,
    actor_forward,
    critic_forward,
    members,
    sample_action,
)
from fog.networks import init_critic as init_critic
from fog.replay.batch import Batch

METRICS: tuple[str, ...] = ("critic_loss", "q", "td_error", "actor_loss", "entropy", "temperature")
"""Names of the entries of the metrics vector, in order."""
NOISES = 2
CRITICS: tuple[str, ...] = ("online",)
NETWORKS: tuple[str, ...] = ("online", "actor")
KEPT: tuple[str, ...] = ()
STOCHASTIC = True
COMPILES = True


def update_(
    state: State, batch: Batch, noise: Tensor, bc_active: Tensor, hyper: Hyperparameters
) -> tuple[Tensor, Tensor]:
    """One update, written into the tensors of `state`.

    Args:
        state: the agent; its tensors are overwritten.
        batch: B transitions.
        noise: (2, B, act_dim) standard normals, for the next action and for the policy's action.
        bc_active: of no meaning here; OBAC waits for it.
        hyper: the constants.

    Returns:
        The metrics vector in the order of `METRICS`, and |TD error| (B,), the larger of the twins'.
    """
    with torch.no_grad(), precision(hyper, noise):
        alpha = temperature(state)
        target = soft_target(state, batch, noise[0], hyper)

        def critic_objective(critic: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            values = q_values(critic, batch.obs, batch.action, hyper)
            return (batch.weight * losses.critic_loss(values, target)).mean(), (values,)

        critic_loss, (values,), grads = gradient(critic_objective, state.critic)
        adamw_(state.critic, grads, state.critic_optimiser, hyper.weight_decay)

        def actor_objective(actor: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            policy = act(actor, batch.obs, noise[1], hyper)
            loss, _ = actor_loss(policy, state, batch, alpha, hyper)
            return loss.mean(), (policy.log_prob,)

        loss, (log_prob,), grads = gradient(actor_objective, state.actor)
        adamw_(state.actor, grads, state.actor_optimiser)

        temperature_step_(state, log_prob, hyper)
        polyak_(state.target, state.critic, hyper.polyak)

        td_error = losses.priority_error(values, target)
        metrics = [critic_loss, values.mean(), td_error.mean(), loss, -log_prob.mean(), alpha]
        return torch.stack(metrics), td_error


def soft_target(state: State, batch: Batch, noise: Tensor, hyper: Hyperparameters) -> Tensor:
    """Y = r + g m (Q'(s', a') - alpha log pi(a' | s')) of the online critics, (B,)."""
    policy = act(state.actor, batch.next_obs, noise, hyper)
    values = q_values(online(state.target), batch.next_obs, policy.action, hyper)
    return losses.soft_target(
        batch.reward,
        batch.bootstrap,
        losses.combine(values, hyper.pessimism),
        policy.log_prob,
        temperature(state),
        hyper.discount,
    )


def actor_loss(
    policy: GaussianAction, state: State, batch: Batch, alpha: Tensor, hyper: Hyperparameters
) -> tuple[Tensor, Tensor]:
    """Alpha log pi(a | s) - Q(s, a) of the policy's own actions, and Q(s, a), (B,) each."""
    values = q_values(online(state.critic), batch.obs, policy.action, hyper)
    value = losses.combine(values, hyper.pessimism)
    return losses.actor_loss(policy.log_prob, value, alpha), value


def temperature_step_(state: State, log_prob: Tensor, hyper: Hyperparameters) -> None:
    """Move log alpha towards the target entropy."""

    def objective(params: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
        loss = losses.temperature_loss(params["log"], log_prob, hyper.target_entropy)
        return loss.mean(), ()

    _, _, grads = gradient(objective, state.temperature)
    adamw_(state.temperature, grads, state.temperature_optimiser)


@torch.no_grad()
def transition_losses(
    state: State, batch: Batch, noise: Tensor, hyper: Hyperparameters
) -> dict[str, Loss]:
    """The training loss of every transition and what it is regressed on, by network.

    Unweighted and unreduced. Noise is (B, act_dim), for the next action, and the caller's own.
    """
    with precision(hyper, noise):
        target = soft_target(state, batch, noise, hyper)
        values = q_values(state.critic, batch.obs, batch.action, hyper)
        return {"online": Loss(losses.critic_loss(values, target), target)}


def network_loss(
    look: Look, state: State, batch: Batch, noise: Tensor, bc_active: bool, hyper: Hyperparameters
) -> Tensor:
    """The training loss of one network per transition (B,), as a function of its parameters.

    Networks are "online" (the critics) and "actor", for whose own action the noise (B, act_dim) is.
    The weights of the batch do not count.
    """
    if look.target is None:
        policy = act(look.params, batch.obs, noise, hyper, look.tap)
        return actor_loss(policy, state, batch, temperature(state), hyper)[0]
    values = q_values(look.params, batch.obs, batch.action, hyper, look.tap)
    return losses.critic_loss(values, look.target)


def online(critics: Params) -> Params:
    """The online twins of stacked critics, as views."""
    return members(critics, 0, 2)


def act(
    actor: Params, obs: Tensor, noise: Tensor, hyper: Hyperparameters, tap: Tap | None = None
) -> GaussianAction:
    """Actions that the policy samples with the given noise, (B, act_dim)."""
    mean, log_std = actor_forward(actor, obs, hyper.activation, hyper.log_std, tap)
    return sample_action(mean, log_std, noise)


def q_values(
    critics: Params, obs: Tensor, action: Tensor, hyper: Hyperparameters, tap: Tap | None = None
) -> Tensor:
    """Q(s, a) of every stacked critic, (E, B)."""
    return critic_forward(critics, torch.cat([obs, action], dim=-1), hyper.activation, tap)


# What acting and probes need of an algorithm, see `fog.algorithms.families`


def decide(state: State, obs: Tensor, noise: Tensor | None, hyper: Hyperparameters) -> Tensor:
    """Actions sampled with the noise; tanh of the mean without."""
    mean, log_std = policy(state, obs, hyper)
    if noise is not None:
        mean = torch.addcmul(mean, log_std.exp(), noise)
    return torch.tanh(mean)


def observe_(state: State, obs: Tensor) -> None:
    """Observations go into the networks as they are, so there is nothing to take in."""


def parameters(state: State, network: str) -> Params:
    """The tree of the twins ("online"), of their targets ("online_target"), of the actor."""
    if network == "actor":
        return dict(state.actor)
    return online(state.target if network == "online_target" else state.critic)


def evaluate(
    look: Look, state: State, obs: Tensor, action: Tensor, hyper: Hyperparameters
) -> Tensor:
    """Q(s, a) of critics with these parameters, (E, B)."""
    return q_values(look.params, obs, action, hyper, look.tap)


def policy(
    state: State, obs: Tensor, hyper: Hyperparameters, tap: Tap | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and log standard deviation before squashing, (B, act_dim) each."""
    return actor_forward(state.actor, obs, hyper.activation, hyper.log_std, tap)
