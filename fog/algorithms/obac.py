"""OBAC (Luo et al., 2024), the backbone of FoG: SAC, and beside it an agent learned offline.

The offline twins Qb regress on V, and V on an expectile of Qb: what the stored behaviour is worth.
Where that beats the policy's own value, the actor also clones the stored actions. Online and
offline twins are one stack of four critics, members 0 and 1 online, 2 and 3 offline, with one
optimiser, which treats every entry by itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fog.algorithms import losses, sac
from fog.algorithms.gradient import gradient
from fog.algorithms.hyperparameters import Hyperparameters, precision
from fog.algorithms.optimiser import adamw_, polyak_
from fog.algorithms.sac import COMPILES as COMPILES
from fog.algorithms.sac import KEPT as KEPT
from fog.algorithms.sac import NOISES as NOISES
from fog.algorithms.sac import STOCHASTIC as STOCHASTIC
from fog.algorithms.sac import decide as decide
from fog.algorithms.sac import init_critic as init_critic
from fog.algorithms.sac import newborn as newborn
from fog.algorithms.sac import observe_ as observe_
from fog.algorithms.sac import policy as policy
from fog.algorithms.state import State
from fog.events import Loss
from fog.networks import GaussianAction, Look, Params, critic_forward, members
from fog.replay.batch import Batch

METRICS: tuple[str, ...] = (
    *sac.METRICS,
    "offline_critic_loss",
    "offline_q",
    "value_loss",
    "value",
    "bc_density",
    "bc_gate",
)
"""Names of the entries of the metrics vector, in order."""
CRITICS: tuple[str, ...] = ("online", "offline")
NETWORKS: tuple[str, ...] = ("online", "offline", "value", "actor")


def update_(
    state: State, batch: Batch, noise: Tensor, bc_active: Tensor, hyper: Hyperparameters
) -> tuple[Tensor, Tensor]:
    """One update, written into the tensors of `state`; arguments and results as of `sac.update_`.

    `bc_active`, a boolean scalar, says whether the wait after a reset is over. The gate compares
    the policy's value under the new critics with the offline value before their step.
    """
    with torch.no_grad(), precision(hyper, noise):
        alpha = sac.temperature(state)
        y = sac.soft_target(state, batch, noise[0], hyper)
        y_offline = offline_target(state, batch, hyper)
        v_target = behaviour_value(state.target, batch, hyper)
        targets = torch.stack([y, y, y_offline, y_offline])

        def critic_objective(critic: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            values = sac.q_values(critic, batch.obs, batch.action, hyper)
            errors = batch.weight * losses.squared_td_error(values, targets)
            return errors.mean(dim=1).sum(), (values, errors)

        _, (values, errors), critic_grads = gradient(critic_objective, state.critic)
        behaviour = losses.combine(offline(values), 1.0)

        def value_objective(value: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            v = critic_forward(value, batch.obs, hyper.activation)[0]
            return losses.expectile_loss(v_target - v, hyper.expectile).mean(), (v,)

        value_loss, (v,), value_grads = gradient(value_objective, state.value)
        adamw_(state.critic, critic_grads, state.critic_optimiser, hyper.weight_decay)
        adamw_(state.value, value_grads, state.value_optimiser, hyper.weight_decay)

        def actor_objective(actor: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            policy = sac.act(actor, batch.obs, noise[1], hyper)
            loss, value = sac.actor_loss(policy, state, batch, alpha, hyper)
            gate, density = cloning(policy, value, behaviour, batch, bc_active, hyper)
            loss = loss.mean() - gate * hyper.bc_weight * density.mean()
            return loss, (policy.log_prob, density.mean(), gate)

        loss, (log_prob, density, gate), grads = gradient(actor_objective, state.actor)
        adamw_(state.actor, grads, state.actor_optimiser)

        sac.temperature_step_(state, log_prob, hyper)
        polyak_(state.target, state.critic, hyper.polyak)

        td_error = losses.priority_error(values[:2], y)
        metrics = [errors[:2].sum(dim=0).mean(), values[:2].mean(), td_error.mean()]
        metrics += [loss, -log_prob.mean(), alpha]
        metrics += [errors[2:].sum(dim=0).mean(), behaviour.mean()]
        metrics += [value_loss, v.mean(), density, gate]
        return torch.stack(metrics), td_error


def offline_target(state: State, batch: Batch, hyper: Hyperparameters) -> Tensor:
    """y_b = r + g m V(s') of the offline critics, (B,)."""
    next_value = critic_forward(state.value, batch.next_obs, hyper.activation)[0]
    return losses.offline_target(batch.reward, batch.bootstrap, next_value, hyper.discount)


def behaviour_value(critics: Params, batch: Batch, hyper: Hyperparameters) -> Tensor:
    """min_j Qb_j(s, a) of the stored actions, (B,)."""
    values = sac.q_values(members(critics, 2, 4), batch.obs, batch.action, hyper)
    return losses.combine(values, 1.0)


def cloning(
    policy: GaussianAction,
    value: Tensor,
    behaviour: Tensor,
    batch: Batch,
    bc_active: Tensor,
    hyper: Hyperparameters,
) -> tuple[Tensor, Tensor]:
    """The gate, 0 or 1 for the whole batch, and the density of the stored actions, (B,)."""
    gate = bc_active & losses.cloning_gate(value, behaviour)
    bounds = hyper.log_std.bounds
    density = losses.cloning_density(policy.mean, policy.log_std, batch.action, bounds)
    return gate.to(value.dtype), density


@torch.no_grad()
def transition_losses(
    state: State, batch: Batch, noise: Tensor, hyper: Hyperparameters
) -> dict[str, Loss]:
    """The training loss of every transition and what it is regressed on; see `sac`."""
    with precision(hyper, noise):
        y = sac.soft_target(state, batch, noise, hyper)
        y_offline = offline_target(state, batch, hyper)
        v_target = behaviour_value(state.target, batch, hyper)
        values = sac.q_values(state.critic, batch.obs, batch.action, hyper)
        v = critic_forward(state.value, batch.obs, hyper.activation)[0]
        return {
            "online": Loss(losses.critic_loss(values[:2], y), y),
            "offline": Loss(losses.critic_loss(offline(values), y_offline), y_offline),
            "value": Loss(losses.expectile_loss(v_target - v, hyper.expectile), v_target),
        }


def network_loss(
    look: Look, state: State, batch: Batch, noise: Tensor, bc_active: bool, hyper: Hyperparameters
) -> Tensor:
    """The training loss of one network per transition (B,); see `sac.network_loss`.

    Networks are "online", "offline", "value" and "actor"; `bc_active` lets the actor clone.
    """
    if look.network == "value" and look.target is not None:
        v = critic_forward(look.params, batch.obs, hyper.activation, look.tap)[0]
        return losses.expectile_loss(look.target - v, hyper.expectile)
    if look.target is not None or not bc_active:
        return sac.network_loss(look, state, batch, noise, bc_active, hyper)
    policy = sac.act(look.params, batch.obs, noise, hyper, look.tap)
    loss, value = sac.actor_loss(policy, state, batch, sac.temperature(state), hyper)
    behaviour = behaviour_value(state.critic, batch, hyper)
    active = torch.tensor(bc_active, device=loss.device)
    gate, density = cloning(policy, value, behaviour, batch, active, hyper)
    return loss - gate * hyper.bc_weight * density


def offline(values: Tensor) -> Tensor:
    """Those of the offline twins, of what all four critics say."""
    return values[2:]


def parameters(state: State, network: str) -> Params:
    """The tree of a network; see `sac.parameters`."""
    if network == "value":
        return dict(state.value)
    if network.startswith("offline"):
        return members(state.target if network.endswith("_target") else state.critic, 2, 4)
    return sac.parameters(state, network)


def evaluate(
    look: Look, state: State, obs: Tensor, action: Tensor, hyper: Hyperparameters
) -> Tensor:
    """Q(s, a) of critics with these parameters, (E, B), or V(s), (1, B)."""
    if look.network == "value":
        return critic_forward(look.params, obs, hyper.activation, look.tap)
    return sac.q_values(look.params, obs, action, hyper, look.tap)
