"""Neuroplastic Expansion (Liu et al., 2025): TD3 with sparse networks that grow weight by weight.

`update_` is the algorithm. Four fifths of the weights begin masked. Every 100th update of a network
is a step of its topology and not of its optimiser: the weights with the largest gradients are
unmasked, four tenths as many of the smallest are masked, until a quarter is left masked. From then
on as many are masked as unmasked.

As in the official code (torressliu/neuroplastic-expansion, commit de2c660) and not as its flags
suggest: growth is 0.008 of the room at birth, the share afterwards begins at 0.2, Adam's moments of
masked weights stay, and the batch halves while few neurons are active. Experience review, off by
default there, is left out. A layer that begins with less than a fifth masked does not grow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fog.algorithms import losses
from fog.algorithms.birth import born
from fog.algorithms.birth import parameters as parameters
from fog.algorithms.gradient import gradient
from fog.algorithms.hyperparameters import Hyperparameters, precision
from fog.algorithms.optimiser import Optimiser, polyak_
from fog.algorithms.sac import observe_ as observe_
from fog.algorithms.topology import learn_, mask_, masked_share
from fog.events import Loss
from fog.networks import Look, Params, Tap
from fog.networks.layers import tapped
from fog.records.sizes import NetworkSpec, Shapes
from fog.records.sparsity import kept, sparse_layers
from fog.replay.batch import Batch
from fog.settings.config import AgentConfig

METRICS: tuple[str, ...] = ("critic_loss", "q", "td_error", "actor_loss", "masked", "active")
"""Names of the entries of the metrics vector, in order."""
NOISES = 1
CRITICS: tuple[str, ...] = ("online",)
NETWORKS: tuple[str, ...] = ("online", "actor")
KEPT: tuple[str, ...] = ()
STOCHASTIC = False
COMPILES = False
"""What an update does depends on how many there were."""

TARGET_NOISE, TARGET_CLIP, EXPLORATION, DELAY = 0.2, 0.5, 0.1, 2
"""TD3's constants: smoothing of the target action, noise of training, updates per actor update."""
FEW_ACTIVE = 0.36
"""Share of positive hidden outputs below which only half of the batch counts."""
LAYER_NORM_EPS = 1e-5


class State(NamedTuple):
    """Parameters, masks and optimisers; a mask is 1 where a weight is active.

    `clock` counts updates, and for each network those since birth or since the end of its growth,
    says whether growth has ended, and holds the share of active neurons of the last update. All but
    the share stay on the host: what an update does depends on them, and it must not wait for a GPU.
    """

    actor: Params
    critic: Params
    target: Params
    actor_target: Params
    actor_mask: Params
    critic_mask: Params
    clock: Params
    actor_optimiser: Optimiser
    critic_optimiser: Optimiser


def update_(
    state: State, batch: Batch, noise: Tensor, bc_active: Tensor, hyper: Hyperparameters
) -> tuple[Tensor, Tensor]:
    """One update, written into the tensors of `state`; arguments and results as of `sac.update_`.

    Noise is (1, B, act_dim) and smooths the target action.
    """
    with torch.no_grad(), precision(hyper, noise):
        clock, rows = state.clock, len(batch.reward)
        few = (clock["active"] < FEW_ACTIVE) & (rows > 1)
        counted = torch.where(few, rows // 2, rows)
        share = (torch.arange(rows, device=noise.device) < counted) * (rows / counted)
        target = td_target(state, batch, noise[0], hyper)
        seen = _Active()

        def critic_objective(critic: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            values = q_values(critic, batch.obs, batch.action, seen)
            loss = share * batch.weight * losses.critic_loss(values, target)
            return loss.mean(), (values,)

        critic_loss, (values,), grads = gradient(critic_objective, state.critic)
        clock["active"].copy_(seen.share())
        learn_(state.critic, state.critic_mask, grads, state.critic_optimiser, clock, "critic")

        clock["updates"].add_(1)
        loss = -q_values(state.critic, batch.obs, act(state.actor, batch.obs))[0].mean()
        if int(clock["updates"]) % DELAY == 0:

            def actor_objective(actor: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
                return (share * actor_loss(actor, state, batch)).mean(), ()

            _, _, grads = gradient(actor_objective, state.actor)
            learn_(state.actor, state.actor_mask, grads, state.actor_optimiser, clock, "actor")
            polyak_(state.target, state.critic, hyper.polyak)
            polyak_(state.actor_target, state.actor, hyper.polyak)
            mask_(state.target, state.critic_mask)
            mask_(state.actor_target, state.actor_mask)

        td_error = losses.priority_error(values, target)
        masked = masked_share(state.critic, state.critic_mask)
        metrics = [critic_loss, values.mean(), td_error.mean(), loss, masked, clock["active"]]
        return torch.stack(metrics), td_error


def td_target(state: State, batch: Batch, noise: Tensor, hyper: Hyperparameters) -> Tensor:
    """Y = r + g m min Q'(s', a'), a' the target actor's action with clipped noise, (B,)."""
    smooth = (TARGET_NOISE * noise).clamp(-TARGET_CLIP, TARGET_CLIP)
    action = (act(state.actor_target, batch.next_obs) + smooth).clamp(-1.0, 1.0)
    value = q_values(state.target, batch.next_obs, action).amin(dim=0)
    return batch.reward + hyper.discount * batch.bootstrap * value


def actor_loss(actor: Params, state: State, batch: Batch, tap: Tap | None = None) -> Tensor:
    """-Q1(s, pi(s)), (B,)."""
    return -q_values(state.critic, batch.obs, act(actor, batch.obs, tap))[0]


def act(actor: Params, obs: Tensor, tap: Tap | None = None) -> Tensor:
    """The deterministic action, (B, act_dim)."""
    return torch.tanh(forward(actor, obs, tap)[0])


def q_values(critics: Params, obs: Tensor, action: Tensor, tap: Tap | None = None) -> Tensor:
    """Q(s, a) of both critics, (2, B)."""
    return forward(critics, torch.cat([obs, action], dim=-1), tap).squeeze(-1)


def forward(params: Params, inputs: Tensor, tap: Tap | None = None) -> Tensor:
    """An MLP of hidden layers with ReLU, the last of a critic with LayerNorm: (E, B, outputs)."""
    x = inputs.expand(params["hidden0.weight"].shape[0], -1, -1)
    index = 0
    while f"hidden{index}.weight" in params:
        key = f"hidden{index}"
        x = torch.baddbmm(params[f"{key}.bias"], x, params[f"{key}.weight"])
        if f"{key}.scale" in params:
            normed = F.layer_norm(x, x.shape[-1:], eps=LAYER_NORM_EPS)
            x = torch.addcmul(params[f"{key}.offset"], normed, params[f"{key}.scale"])
        x = tapped(tap, key, x, "relu")
        index += 1
    x = tapped(tap, "features", x, None)
    return torch.baddbmm(params["head.bias"], x, params["head.weight"])


class _Active:
    """A tap that counts positive outputs of hidden layers."""

    def __init__(self) -> None:
        self._positive: list[Tensor] = []

    def __call__(self, name: str, z: Tensor, activation: object) -> Tensor:
        if name == "features":
            return z
        self._positive.append((z.detach() > 0).float().mean())
        return F.relu(z)

    def share(self) -> Tensor:
        """Positive outputs over all, of layers that are equally wide."""
        return torch.stack(self._positive).mean()


def init_critic(rng: np.random.Generator, shapes: Shapes) -> Params:
    """Fresh values of a network: torch's own initial weights, all but the largest masked."""
    params: Params = {}
    for name, shape in shapes.items():
        if name.endswith((".scale", ".offset")):
            params[name] = torch.full(shape, 1.0 if name.endswith(".scale") else 0.0)
            continue
        fan_in = shapes[name.replace(".bias", ".weight")][1]
        drawn = rng.uniform(-1.0, 1.0, shape) / math.sqrt(fan_in)
        params[name] = torch.from_numpy(drawn.astype(np.float32))
    for name, count in kept(shapes).items():
        for member in params[name]:
            flat = member.view(-1)
            flat[flat.abs().topk(flat.numel() - count, largest=False).indices] = 0.0
    return params


def newborn(
    rng: np.random.Generator, spec: NetworkSpec, config: AgentConfig, device: torch.device
) -> State:
    """Fresh networks, masks and optimisers."""
    trees = {"actor": init_critic(rng, spec.actor()), "critic": init_critic(rng, spec.critic(0))}
    for name in ("actor", "critic"):
        tree = trees[name]
        layers = sparse_layers({key: tuple(tensor.shape) for key, tensor in tree.items()})
        trees[f"{name}_mask"] = {layer: (tree[layer] != 0).float() for layer in layers}
    trees["actor_target"] = {name: tensor.clone() for name, tensor in trees["actor"].items()}
    state = born(trees, {"actor": config.actor_lr, "critic": config.critic_lr}, device)
    counters = ("updates", "critic_calls", "critic_ended", "actor_calls", "actor_ended")
    clock = {name: torch.zeros(()) for name in counters}
    return State(**state, clock=clock | {"active": torch.ones((), device=device)})


# What acting and probes need of an algorithm, see `fog.algorithms.families`


def decide(state: State, obs: Tensor, noise: Tensor | None, hyper: Hyperparameters) -> Tensor:
    """The actor's action, with a tenth of the noise in training."""
    action = act(state.actor, obs)
    return action if noise is None else (action + EXPLORATION * noise).clamp(-1.0, 1.0)


def evaluate(
    look: Look, state: State, obs: Tensor, action: Tensor, hyper: Hyperparameters
) -> Tensor:
    """Q(s, a) of critics with these parameters, (2, B)."""
    return q_values(look.params, obs, action, look.tap)


def policy(
    state: State, obs: Tensor, hyper: Hyperparameters, tap: Tap | None = None
) -> tuple[Tensor, Tensor]:
    """What tanh makes the action of, and a deviation of zero: its logarithm."""
    mean = forward(state.actor, obs, tap)[0]
    return mean, torch.full_like(mean, -math.inf)


@torch.no_grad()
def transition_losses(
    state: State, batch: Batch, noise: Tensor, hyper: Hyperparameters
) -> dict[str, Loss]:
    """The training loss of every transition and what it is regressed on; see `sac`."""
    with precision(hyper, noise):
        target = td_target(state, batch, noise, hyper)
        values = q_values(state.critic, batch.obs, batch.action)
        return {"online": Loss(losses.critic_loss(values, target), target)}


def network_loss(
    look: Look, state: State, batch: Batch, noise: Tensor, bc_active: bool, hyper: Hyperparameters
) -> Tensor:
    """The training loss of one network per transition (B,); see `sac.network_loss`."""
    if look.target is None:
        return actor_loss(look.params, state, batch, look.tap)
    values = q_values(look.params, batch.obs, batch.action, look.tap)
    return losses.critic_loss(values, look.target)
