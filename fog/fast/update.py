"""One update of SAC or OBAC as one function of (state, batch, noise).

Order, which the paper leaves open where it is marked (*); docs/agents.md gives the reasons:

1. targets, from the networks as they are: y of the online critics, y_b of the offline ones;
2. critics (online and offline as one stack), then V;
3. actor, against the *new* online critics (*);
4. temperature, from the actor's sample of step 3;
5. target networks.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import torch
from torch import Tensor

from fog.algorithms import losses
from fog.algorithms.hyperparameters import Rule
from fog.algorithms.optimiser import adamw_, polyak_
from fog.algorithms.state import State, clone_state
from fog.fast import loss_gradients as slopes
from fog.fast.backward import (
    Tape,
    action_gradient,
    actor_head,
    actor_weight_gradients,
    critic_values,
    critic_weight_gradients,
)
from fog.fast.minimum_twin import picked_action_gradient
from fog.networks import GaussianAction, Params, members, sample_action
from fog.replay.batch import Batch

ONLINE, OFFLINE = slice(0, 2), slice(2, 4)

_SAC_METRICS = (
    "critic_loss",
    "q",
    "td_error",
    "actor_loss",
    "entropy",
    "temperature",
)
_OFFLINE_METRICS = (
    "offline_critic_loss",
    "offline_q",
    "value_loss",
    "value",
    "bc_density",
    "bc_gate",
)


def metric_names(rule: Rule) -> tuple[str, ...]:
    """Names of the entries of the metrics vector, in order."""
    return _SAC_METRICS + _OFFLINE_METRICS if rule.offline else _SAC_METRICS


class Targets(NamedTuple):
    """What critics and V are regressed on.

    Attributes:
        critic: (E, B), the target of every stacked critic.
        value: (B,), min_j Qb'_j(s, a) of the offline target critics; None for SAC.
    """

    critic: Tensor
    value: Tensor | None


class TransitionLosses(NamedTuple):
    """Losses of single transitions and what they are regressed on, (B,) each and unweighted.

    Those of the offline critics and of V are None for SAC.
    """

    critic: Tensor
    target: Tensor
    q: Tensor
    offline_critic: Tensor | None
    offline_target: Tensor | None
    value: Tensor | None
    value_target: Tensor | None


def update(
    state: State, batch: Batch, noise: Tensor, bc_active: Tensor, rule: Rule
) -> tuple[State, Tensor, Tensor]:
    """One update as a pure function; see `update_` for the arguments.

    Returns:
        The new state, the metrics vector and the TD errors; `state` is left as it was.
    """
    new = clone_state(state)
    metrics, td_error = update_(new, batch, noise, bc_active, rule)
    return new, metrics, td_error


def update_(
    state: State, batch: Batch, noise: Tensor, bc_active: Tensor, rule: Rule
) -> tuple[Tensor, Tensor]:
    """One update, written into the tensors of `state`.

    Args:
        state: the agent; its tensors are overwritten.
        batch: one batch of B transitions.
        noise: (2, B, act_dim) standard normals, for the next action and the policy's action.
        bc_active: boolean scalar, whether the OBAC wait is over.
        rule: constants.

    Returns:
        The metrics vector in the order of `metric_names`, and |TD error| (B,), the larger of the
        online twins'.
    """
    with torch.no_grad(), _precision(rule, noise):
        return _update(state, batch, noise, bc_active, rule)


def _update(
    state: State, batch: Batch, noise: Tensor, bc_active: Tensor, rule: Rule
) -> tuple[Tensor, Tensor]:
    temperature = state.temperature["log"].exp()
    inputs = torch.cat([batch.obs, batch.action], dim=-1)
    targets = compute_targets(state, batch, inputs, noise[0], rule)

    values, tape = critic_values(state.critic, inputs, rule.style)
    slope = slopes.squared_td_error(values, targets.critic, batch.weight)
    critic_grads = critic_weight_gradients(state.critic, tape, slope, rule.style)
    extra: list[Tensor] = []
    if targets.value is not None:
        extra = _update_value(state, batch, targets.value, rule)
    adamw_(state.critic, critic_grads, state.critic_optimiser, rule.weight_decay)

    offline_value = losses.combine(values[OFFLINE], 1.0) if rule.offline else None
    actor = _actor_step(state, batch, noise[1], temperature, offline_value, bc_active, rule)
    adamw_(state.actor, actor.grads, state.actor_optimiser)

    # The temperature loss is linear in log(alpha), so its gradient is its value at log(alpha) = 1.
    linear = losses.temperature_loss(
        torch.ones_like(temperature), actor.log_prob, rule.target_entropy
    )
    adamw_(state.temperature, {"log": linear.mean()}, state.temperature_optimiser)
    polyak_(state.target, state.critic, rule.polyak)

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


def _update_value(state: State, batch: Batch, target: Tensor, rule: Rule) -> list[Tensor]:
    """One step of V; returns its metrics."""
    values, tape = critic_values(state.value, batch.obs, rule.style)
    difference = target - values[0]
    slope = slopes.expectile_loss(difference, rule.expectile).unsqueeze(0)
    grads = critic_weight_gradients(state.value, tape, slope, rule.style)
    adamw_(state.value, grads, state.value_optimiser, rule.weight_decay)
    return [losses.expectile_loss(difference, rule.expectile).mean(), values.mean()]


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
    rule: Rule,
) -> _ActorStep:
    """Loss and gradient of the actor against the online critics as they are now."""
    policy, spread_slope, tape = _policy(state.actor, batch.obs, noise, rule)
    online = members(state.critic, 0, 2) if rule.offline else state.critic
    inputs = torch.cat([batch.obs, policy.action], dim=-1)
    values, critic_tape = critic_values(online, inputs, rule.style)
    value = losses.combine(values, rule.pessimism)
    loss = losses.actor_loss(policy.log_prob, value, temperature).mean()
    rows, act_dim = policy.action.shape
    if rule.picks and values.device.type == "cpu":
        slope = picked_action_gradient(online, critic_tape, values, rule.style, act_dim)
    else:
        slope = slopes.combine(values, rule.pessimism) / rows
        slope = action_gradient(online, critic_tape, slope, rule.style, act_dim)
    mean, log_std = slopes.actor_loss(policy, noise, slope, temperature)
    cloning: tuple[Tensor, ...] = ()
    if offline_value is not None:
        bounds = rule.log_std.bounds
        density = losses.cloning_density(policy.mean, policy.log_std, batch.action, bounds).mean()
        gate = (bc_active & losses.cloning_gate(value, offline_value)).to(loss.dtype)
        pull = slopes.cloning_density(policy, batch.action, bounds)
        share = gate * rule.bc_weight
        loss, mean, log_std = (
            part - share * change
            for part, change in zip((loss, mean, log_std), (density, *pull), strict=True)
        )
        cloning = (density, gate)
    head = torch.cat([mean, log_std * spread_slope], dim=-1)
    grads = actor_weight_gradients(state.actor, tape, head, rule.style)
    return _ActorStep(grads, loss, policy.log_prob, cloning)


def compute_targets(
    state: State, batch: Batch, inputs: Tensor, noise: Tensor, rule: Rule
) -> Targets:
    """Regression targets of the critics and V; `inputs` is [obs, action] of the batch.

    The online target critics see (s', a'), the offline ones (s, a): one stacked evaluation.
    """
    policy, _, _ = _policy(state.actor, batch.next_obs, noise, rule)
    next_inputs = torch.cat([batch.next_obs, policy.action], dim=-1)
    if rule.offline:
        stacked = torch.stack([next_inputs, next_inputs, inputs, inputs])
        values, _ = critic_values(state.target, stacked, rule.style)
    else:
        values, _ = critic_values(state.target, next_inputs, rule.style)
    soft = losses.soft_target(
        batch.reward,
        batch.bootstrap,
        losses.combine(values[ONLINE], rule.pessimism),
        policy.log_prob,
        state.temperature["log"].exp(),
        rule.discount,
    )
    if not rule.offline:
        return Targets(soft.expand(2, -1), None)
    next_value, _ = critic_values(state.value, batch.next_obs, rule.style)
    offline = losses.offline_target(batch.reward, batch.bootstrap, next_value[0], rule.discount)
    return Targets(
        torch.stack([soft, soft, offline, offline]), losses.combine(values[OFFLINE], 1.0)
    )


@torch.no_grad()
def transition_losses(state: State, batch: Batch, noise: Tensor, rule: Rule) -> TransitionLosses:
    """The training losses of every transition of a batch, unweighted and unreduced.

    Args:
        state: the agent; only read.
        batch: B transitions.
        noise: (B, act_dim) standard normals for the next action, from the caller's own stream.
        rule: constants.
    """
    inputs = torch.cat([batch.obs, batch.action], dim=-1)
    offline = value = None
    with _precision(rule, noise):
        targets = compute_targets(state, batch, inputs, noise, rule)
        values, _ = critic_values(state.critic, inputs, rule.style)
        if targets.value is not None:
            offline = losses.critic_loss(values[OFFLINE], targets.critic[OFFLINE])
            estimate, _ = critic_values(state.value, batch.obs, rule.style)
            value = losses.expectile_loss(targets.value - estimate[0], rule.expectile)
    return TransitionLosses(
        critic=losses.critic_loss(values[ONLINE], targets.critic[ONLINE]),
        target=targets.critic[0],
        q=values[ONLINE].mean(dim=0),
        offline_critic=offline,
        offline_target=targets.critic[2] if rule.offline else None,
        value=value,
        value_target=targets.value,
    )


def _policy(
    actor: Params, obs: Tensor, noise: Tensor, rule: Rule
) -> tuple[GaussianAction, Tensor, Tape]:
    """Sampled actions, the derivative of the log std in the actor's free output, and the tape."""
    head, tape = actor_head(actor, obs, rule.style)
    mean, free = head.chunk(2, dim=-1)
    log_std, slope = rule.log_std.with_slope(free)
    return sample_action(mean, log_std, noise), slope, tape


def _precision(rule: Rule, like: Tensor) -> contextlib.AbstractContextManager[object]:
    if not rule.mixed_precision:
        return contextlib.nullcontext()
    return torch.autocast(like.device.type, dtype=torch.bfloat16)
