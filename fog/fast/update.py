"""The updates of `fog.algorithms.sac` and `fog.algorithms.obac`, with gradients written out.

Same signatures, same order of steps, same values to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fog.algorithms import losses
from fog.algorithms.optimiser import adamw_, polyak_
from fog.algorithms.state import State
from fog.events import Loss
from fog.fast import loss_gradients
from fog.fast.backward import (
    Tape,
    action_gradient,
    actor_head,
    actor_weight_gradients,
    critic_values,
    critic_weight_gradients,
)
from fog.fast.constants import FastHyperparameters
from fog.fast.minimum_twin import minimum_action_gradient
from fog.networks import GaussianAction, Params, members, sample_action
from fog.replay.batch import Batch

ONLINE, OFFLINE = slice(0, 2), slice(2, 4)


class Targets(NamedTuple):
    """What critics (E, B) and V (B,) are regressed on; V's is min_j Qb'_j(s, a), None for SAC."""

    critic: Tensor
    value: Tensor | None


def update_(
    state: State, batch: Batch, noise: Tensor, bc_active: Tensor, hyper: FastHyperparameters
) -> tuple[Tensor, Tensor]:
    """See `fog.algorithms.sac.update_` and `fog.algorithms.obac.update_`."""
    with torch.no_grad():
        return _update(state, batch, noise, bc_active, hyper)


def _update(
    state: State, batch: Batch, noise: Tensor, bc_active: Tensor, hyper: FastHyperparameters
) -> tuple[Tensor, Tensor]:
    temperature = state.temperature["log"].exp()
    inputs = torch.cat([batch.obs, batch.action], dim=-1)
    targets = compute_targets(state, batch, inputs, noise[0], hyper)

    values, tape = critic_values(state.critic, inputs, hyper.style)
    slope = loss_gradients.squared_td_error(values, targets.critic, batch.weight)
    critic_grads = critic_weight_gradients(state.critic, tape, slope, hyper.style)
    extra: list[Tensor] = []
    if targets.value is not None:
        extra = _update_value(state, batch, targets.value, hyper)
    adamw_(state.critic, critic_grads, state.critic_optimiser, hyper.weight_decay)

    offline_value = losses.combine(values[OFFLINE], 1.0) if hyper.offline else None
    actor = _actor_step(state, batch, noise[1], temperature, offline_value, bc_active, hyper)
    adamw_(state.actor, actor.grads, state.actor_optimiser)

    # The temperature loss is linear in log(alpha), so its gradient is its value at log(alpha) = 1.
    linear = losses.temperature_loss(
        torch.ones_like(temperature), actor.log_prob, hyper.target_entropy
    )
    adamw_(state.temperature, {"log": linear.mean()}, state.temperature_optimiser)
    polyak_(state.target, state.critic, hyper.polyak)

    td_error = losses.priority_error(values[ONLINE], targets.critic[ONLINE])
    weighted = batch.weight * losses.squared_td_error(values, targets.critic)
    metrics = [
        weighted[ONLINE].sum(dim=0).mean(),
        values[ONLINE].mean(),
        td_error.mean(),
        actor.loss,
        -actor.log_prob.mean(),
        temperature,
    ]
    if offline_value is not None:
        metrics += [weighted[OFFLINE].sum(dim=0).mean(), offline_value.mean()]
        metrics += [*extra, *actor.cloning]
    return torch.stack(metrics), td_error


def _update_value(
    state: State, batch: Batch, target: Tensor, hyper: FastHyperparameters
) -> list[Tensor]:
    """One step of V; returns its metrics."""
    values, tape = critic_values(state.value, batch.obs, hyper.style)
    difference = target - values[0]
    slope = loss_gradients.expectile_loss(difference, hyper.expectile).unsqueeze(0)
    grads = critic_weight_gradients(state.value, tape, slope, hyper.style)
    adamw_(state.value, grads, state.value_optimiser, hyper.weight_decay)
    return [losses.expectile_loss(difference, hyper.expectile).mean(), values.mean()]


class _ActorStep(NamedTuple):
    grads: Params
    loss: Tensor
    log_prob: Tensor
    cloning: tuple[Tensor, ...]
    """Cloning density and gate; empty for SAC."""


def _actor_step(
    state: State,
    batch: Batch,
    noise: Tensor,
    temperature: Tensor,
    offline_value: Tensor | None,
    bc_active: Tensor,
    hyper: FastHyperparameters,
) -> _ActorStep:
    """Loss and gradient of the actor against the online critics as they are now."""
    policy, spread_slope, tape = _policy(state.actor, batch.obs, noise, hyper)
    online = members(state.critic, 0, 2) if hyper.offline else state.critic
    inputs = torch.cat([batch.obs, policy.action], dim=-1)
    values, critic_tape = critic_values(online, inputs, hyper.style)
    value = losses.combine(values, hyper.pessimism)
    loss = losses.actor_loss(policy.log_prob, value, temperature).mean()
    rows, act_dim = policy.action.shape
    if hyper.one_twin:
        slope = minimum_action_gradient(online, critic_tape, values, hyper.style, act_dim)
    else:
        slope = loss_gradients.combine(values, hyper.pessimism) / rows
        slope = action_gradient(online, critic_tape, slope, hyper.style, act_dim)
    mean, log_std = loss_gradients.actor_loss(policy, noise, slope, temperature)
    cloning: tuple[Tensor, ...] = ()
    if offline_value is not None:
        bounds = hyper.log_std.bounds
        density = losses.cloning_density(policy.mean, policy.log_std, batch.action, bounds).mean()
        gate = (bc_active & losses.cloning_gate(value, offline_value)).to(loss.dtype)
        pull = loss_gradients.cloning_density(policy, batch.action, bounds)
        share = gate * hyper.bc_weight
        loss, mean, log_std = (
            part - share * change
            for part, change in zip((loss, mean, log_std), (density, *pull), strict=True)
        )
        cloning = (density, gate)
    head = torch.cat([mean, log_std * spread_slope], dim=-1)
    grads = actor_weight_gradients(state.actor, tape, head, hyper.style)
    return _ActorStep(grads, loss, policy.log_prob, cloning)


def compute_targets(
    state: State, batch: Batch, inputs: Tensor, noise: Tensor, hyper: FastHyperparameters
) -> Targets:
    """Regression targets of the critics and V; `inputs` is [obs, action] of the batch.

    The online target critics see (s', a'), the offline ones (s, a): one stacked evaluation.
    """
    policy, _, _ = _policy(state.actor, batch.next_obs, noise, hyper)
    next_inputs = torch.cat([batch.next_obs, policy.action], dim=-1)
    if hyper.offline:
        stacked = torch.stack([next_inputs, next_inputs, inputs, inputs])
        values, _ = critic_values(state.target, stacked, hyper.style)
    else:
        values, _ = critic_values(state.target, next_inputs, hyper.style)
    soft = losses.soft_target(
        batch.reward,
        batch.bootstrap,
        losses.combine(values[ONLINE], hyper.pessimism),
        policy.log_prob,
        state.temperature["log"].exp(),
        hyper.discount,
    )
    if not hyper.offline:
        return Targets(soft.expand(2, -1), None)
    next_value, _ = critic_values(state.value, batch.next_obs, hyper.style)
    offline = losses.offline_target(batch.reward, batch.bootstrap, next_value[0], hyper.discount)
    return Targets(
        torch.stack([soft, soft, offline, offline]), losses.combine(values[OFFLINE], 1.0)
    )


@torch.no_grad()
def transition_losses(
    state: State, batch: Batch, noise: Tensor, hyper: FastHyperparameters
) -> dict[str, Loss]:
    """See `fog.algorithms.sac.transition_losses`."""
    inputs = torch.cat([batch.obs, batch.action], dim=-1)
    targets = compute_targets(state, batch, inputs, noise, hyper)
    values, _ = critic_values(state.critic, inputs, hyper.style)
    critic, target = targets.critic, targets.critic[0]
    found = {"online": Loss(losses.critic_loss(values[ONLINE], critic[ONLINE]), target)}
    if targets.value is not None:
        estimate, _ = critic_values(state.value, batch.obs, hyper.style)
        difference = targets.value - estimate[0]
        found["offline"] = Loss(losses.critic_loss(values[OFFLINE], critic[OFFLINE]), critic[2])
        found["value"] = Loss(losses.expectile_loss(difference, hyper.expectile), targets.value)
    return found


def _policy(
    actor: Params, obs: Tensor, noise: Tensor, hyper: FastHyperparameters
) -> tuple[GaussianAction, Tensor, Tape]:
    """Sampled actions, the derivative of the log std in the actor's free output, and the tape."""
    head, tape = actor_head(actor, obs, hyper.style)
    mean, free = head.chunk(2, dim=-1)
    log_std, slope = hyper.log_std.with_slope(free)
    return sample_action(mean, log_std, noise), slope, tape
