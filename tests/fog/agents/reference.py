"""The update by autograd and the plain forward passes: what the fast one is held to."""

from __future__ import annotations

import torch
from torch import Tensor

from fog import losses
from fog.agents.gradient import gradient
from fog.agents.rule import Rule
from fog.agents.state import State
from fog.agents.update import OFFLINE, ONLINE, Targets
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


def reference_update_(
    state: State, batch: Batch, noise: Tensor, bc_active: Tensor, rule: Rule
) -> tuple[Tensor, Tensor]:
    """See `fog.agents.update.update_`."""
    temperature = state.temperature["log"].exp()
    inputs = torch.cat([batch.obs, batch.action], dim=-1)
    with torch.no_grad():
        targets = compute_targets(state, batch, inputs, noise[0], rule)

    def critic_loss(critic: Params) -> tuple[Tensor, tuple[Tensor]]:
        values = critic_forward(critic, inputs, rule.activation)
        error = losses.squared_td_error(values, targets.critic)
        return (batch.weight * error).sum(dim=0).mean(), (values,)

    _, (values,), critic_grads = gradient(critic_loss, state.critic)
    offline: list[Tensor] = []
    if targets.value is not None:
        expected = targets.value

        def value_loss(value: Params) -> tuple[Tensor, tuple[Tensor]]:
            estimate = critic_forward(value, batch.obs, rule.activation)[0]
            return losses.expectile_loss(expected - estimate, rule.expectile).mean(), (estimate,)

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


def _policy(actor: Params, obs: Tensor, noise: Tensor, rule: Rule) -> GaussianAction:
    mean, log_std = actor_forward(actor, obs, rule.activation, rule.log_std_bounds)
    return sample_action(mean, log_std, noise)
