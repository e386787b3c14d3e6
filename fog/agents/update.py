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

from fog import losses
from fog.agents.gradient import gradient
from fog.agents.rule import Rule
from fog.agents.state import State, clone_state
from fog.networks import (
    GaussianAction,
    Params,
    actor_forward,
    critic_forward,
    members,
    sample_action,
)
from fog.optim import adamw_, polyak_
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
    temperature = state.temperature["log"].exp()
    inputs = torch.cat([batch.obs, batch.action], dim=-1)
    with torch.no_grad(), _precision(rule, noise):
        targets = compute_targets(state, batch, inputs, noise[0], rule)

    def critic_loss(critic: Params) -> tuple[Tensor, tuple[Tensor]]:
        values = critic_forward(critic, inputs, rule.activation)
        error = losses.squared_td_error(values, targets.critic)
        return (batch.weight * error).sum(dim=0).mean(), (values,)

    with _precision(rule, noise):
        _, (values,), critic_grads = gradient(critic_loss, state.critic)
    offline: list[Tensor] = []
    if targets.value is not None:
        expected = targets.value

        def value_loss(value: Params) -> tuple[Tensor, tuple[Tensor]]:
            estimate = critic_forward(value, batch.obs, rule.activation)[0]
            return losses.expectile_loss(expected - estimate, rule.expectile).mean(), (estimate,)

        with _precision(rule, noise):
            loss, (estimate,), value_grads = gradient(value_loss, state.value)
        adamw_(state.value, value_grads, state.value_optimiser, rule.weight_decay)
        offline += [loss, estimate.mean()]
    adamw_(state.critic, critic_grads, state.critic_optimiser, rule.weight_decay)

    online = members(state.critic, 0, 2)
    offline_value = losses.combine(values[OFFLINE], 1.0) if rule.offline else None

    def actor_loss(actor: Params) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        policy = _policy(actor, batch.obs, noise[1], rule)
        at_policy = torch.cat([batch.obs, policy.action], dim=-1)
        value = losses.combine(critic_forward(online, at_policy, rule.activation), rule.pessimism)
        loss = losses.actor_loss(policy.log_prob, value, temperature).mean()
        if offline_value is None:
            return loss, (policy.log_prob, loss, loss)
        density = losses.cloning_density(
            policy.mean, policy.log_std, batch.action, rule.log_std_bounds
        ).mean()
        gate = (bc_active & losses.cloning_gate(value, offline_value)).to(loss.dtype)
        return loss - gate * rule.bc_weight * density, (policy.log_prob, density, gate)

    with _precision(rule, noise):
        policy_loss, (log_prob, density, gate), actor_grads = gradient(actor_loss, state.actor)
    adamw_(state.actor, actor_grads, state.actor_optimiser)

    # The temperature loss is linear in log(alpha), so its gradient is its value at log(alpha) = 1.
    slope = losses.temperature_loss(torch.ones_like(temperature), log_prob, rule.target_entropy)
    adamw_(state.temperature, {"log": slope.mean()}, state.temperature_optimiser)
    polyak_(state.target, state.critic, rule.polyak)

    td_error = losses.priority_error(values[ONLINE], targets.critic[ONLINE])
    weighted = batch.weight * losses.squared_td_error(values, targets.critic)
    metrics = [
        weighted[ONLINE].sum(dim=0).mean(),
        values[ONLINE].mean(),
        td_error.mean(),
        policy_loss,
        -log_prob.mean(),
        temperature,
    ]
    if offline_value is not None:
        metrics += [weighted[OFFLINE].sum(dim=0).mean(), offline_value.mean()]
        metrics += [*offline, density, gate]
    return torch.stack(metrics), td_error


def compute_targets(
    state: State, batch: Batch, inputs: Tensor, noise: Tensor, rule: Rule
) -> Targets:
    """Regression targets of the critics and V; `inputs` is [obs, action] of the batch.

    The online target critics see (s', a'), the offline ones (s, a): one stacked evaluation.
    """
    policy = _policy(state.actor, batch.next_obs, noise, rule)
    next_inputs = torch.cat([batch.next_obs, policy.action], dim=-1)
    if rule.offline:
        stacked = torch.stack([next_inputs, next_inputs, inputs, inputs])
        values = critic_forward(state.target, stacked, rule.activation)
    else:
        values = critic_forward(state.target, next_inputs, rule.activation)
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
    next_value = critic_forward(state.value, batch.next_obs, rule.activation)[0]
    offline = losses.offline_target(batch.reward, batch.bootstrap, next_value, rule.discount)
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
        values = critic_forward(state.critic, inputs, rule.activation)
        if targets.value is not None:
            offline = losses.critic_loss(values[OFFLINE], targets.critic[OFFLINE])
            estimate = critic_forward(state.value, batch.obs, rule.activation)[0]
            value = losses.expectile_loss(targets.value - estimate, rule.expectile)
    return TransitionLosses(
        critic=losses.critic_loss(values[ONLINE], targets.critic[ONLINE]),
        target=targets.critic[0],
        q=values[ONLINE].mean(dim=0),
        offline_critic=offline,
        offline_target=targets.critic[2] if rule.offline else None,
        value=value,
        value_target=targets.value,
    )


def _policy(actor: Params, obs: Tensor, noise: Tensor, rule: Rule) -> GaussianAction:
    mean, log_std = actor_forward(actor, obs, rule.activation, rule.log_std_bounds)
    return sample_action(mean, log_std, noise)


def _precision(rule: Rule, like: Tensor) -> contextlib.AbstractContextManager[object]:
    if not rule.mixed_precision:
        return contextlib.nullcontext()
    return torch.autocast(like.device.type, dtype=torch.bfloat16)
