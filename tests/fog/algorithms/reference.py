"""SAC and OBAC once more, from the papers' formulas: what the fast update is held to.

Written with torch's own layers, distributions and optimisers, one network at a time, and nothing of
fog but the names of the tensors. No loss, forward pass, optimiser or averaging is shared.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Normal


class Reference:
    """An agent of independent networks in double precision, started from a state of ours."""

    def __init__(self, config, act_dim, state):
        self.config, self.act_dim = config, act_dim
        self.obac = config.agent.backbone == "obac"
        self.actor = _leaves(state.actor)
        members = 4 if self.obac else 2
        self.critics = [_leaves(_member(state.critic, k)) for k in range(members)]
        self.targets = [_member(state.target, k) for k in range(members)]
        self.values = [_leaves(_member(state.value, 0))] if self.obac else []
        self.log_alpha = _leaves(state.temperature)
        self.dense = self._dense_layers()
        agent = config.agent
        self.actor_adam = torch.optim.Adam(self.actor.values(), lr=_float32(agent.actor_lr))
        self.alpha_adam = torch.optim.Adam(
            self.log_alpha.values(), lr=_float32(agent.temperature_lr)
        )
        self._new_critic_optimisers()

    def _new_critic_optimisers(self):
        agent = self.config.agent
        rate = _float32(agent.critic_lr * self.dense / self._dense_layers())
        decay = agent.weight_decay
        parameters = [tensor for net in self.critics for tensor in net.values()]
        self.critic_adam = torch.optim.AdamW(parameters, lr=rate, weight_decay=decay)
        if self.obac:
            self.value_adam = torch.optim.AdamW(
                self.values[0].values(), lr=rate, weight_decay=decay
            )

    def _dense_layers(self):
        return sum(name.endswith(".weight") for name in self.critics[0])

    def expand(self, state):
        """Take over the fresh blocks of `state`; everything older stays, optimisers start anew."""
        pairs = [
            *((net, state.critic, k) for k, net in enumerate(self.critics)),
            *((net, state.target, k) for k, net in enumerate(self.targets)),
            *((net, state.value, 0) for net in self.values),
        ]
        targets = {id(net) for net in self.targets}
        for net, tree, k in pairs:
            fresh = {name: t for name, t in _member(tree, k).items() if name not in net}
            assert fresh and all(name.startswith("block") for name in fresh)
            net.update(fresh if id(net) in targets else _leaves(fresh))
        self._new_critic_optimisers()

    def update(self, batch, noise, bc_active):
        """One update, with the noise of the next action and of the policy's action."""
        agent = self.config.agent
        obs, action, reward, bootstrap, next_obs, weight = (part.double() for part in batch)
        alpha = self.log_alpha["log"].detach().exp()
        with torch.no_grad():
            next_action, next_log_prob, *_ = self._act(next_obs, noise[0])
            next_q = self._twins([self._q(net, next_obs, next_action) for net in self.targets[:2]])
            soft = reward + agent.discount * bootstrap * (next_q - alpha * next_log_prob)
            goals = [soft, soft]
            if self.obac:
                bellman = reward + agent.discount * bootstrap * self._q(self.values[0], next_obs)
                goals += [bellman, bellman]
                best = torch.stack([self._q(net, obs, action) for net in self.targets[2:]])
                best = best.min(dim=0).values

        estimates = [self._q(net, obs, action) for net in self.critics]
        errors = [q - goal for q, goal in zip(estimates, goals, strict=True)]
        self.critic_adam.zero_grad()
        sum((weight * error**2).mean() for error in errors).backward()
        if self.obac:
            self.value_adam.zero_grad()
            gap = best - self._q(self.values[0], obs)
            above, below = agent.expectile, 1 - agent.expectile
            torch.where(gap < 0, below * gap**2, above * gap**2).mean().backward()
            self.value_adam.step()
        self.critic_adam.step()

        self.actor_adam.zero_grad()
        drawn, log_prob, mean, std = self._act(obs, noise[1])
        q = self._twins([self._q(net, obs, drawn) for net in self.critics[:2]])
        loss = (alpha * log_prob - q).mean()
        if self.obac:
            behaviour = torch.minimum(estimates[2], estimates[3]).mean().detach()
            if bool(bc_active) and q.mean() < behaviour:
                bounds = agent.log_std_min, agent.log_std_max
                loss -= agent.bc_weight * Normal(mean, std).log_prob(action).clamp(*bounds).mean()
        loss.backward()
        self.actor_adam.step()

        self.alpha_adam.zero_grad()
        wanted = agent.target_entropy * self.act_dim
        (-self.log_alpha["log"] * (log_prob.detach().mean() + wanted)).backward()
        self.alpha_adam.step()
        with torch.no_grad():
            for target, net in zip(self.targets, self.critics, strict=True):
                for name in target:
                    target[name] = (1 - agent.polyak) * target[name] + agent.polyak * net[name]
        return torch.stack([error.abs() for error in errors[:2]]).max(dim=0).values.detach()

    def _q(self, net: dict[str, Tensor], *inputs: Tensor) -> Tensor:
        h = self._layer(net, "stem", torch.cat(inputs, dim=-1))
        if "hidden.weight" in net:
            h = self._layer(net, "hidden", h)
        depth = len({name.split(".")[0] for name in net if name.startswith("block")})
        for k in range(depth):
            inside = self._layer(net, f"block{k}.inner", h)
            h = h + self._layer(net, f"block{k}.outer", inside, active=False)
        return (h @ net["head.weight"] + net["head.bias"]).squeeze(-1)

    def _layer(self, net, key, x, active=True):
        h = F.linear(x, net[f"{key}.weight"].T, net[f"{key}.bias"].flatten())
        if f"{key}.scale" in net:
            scale, offset = net[f"{key}.scale"].flatten(), net[f"{key}.offset"].flatten()
            h = F.layer_norm(h, h.shape[-1:], scale, offset, eps=1e-6)
        if not active:
            return h
        return F.elu(h) if self.config.network.activation == "elu" else F.relu(h)

    def _act(self, obs, noise):
        h = obs
        for key in ("hidden0", "hidden1"):
            h = self._layer(self.actor, key, h)
        mean, free = (h @ self.actor["head.weight"] + self.actor["head.bias"]).split(
            self.act_dim, dim=-1
        )
        agent = self.config.agent
        low, high = agent.log_std_min, agent.log_std_max
        if agent.log_std_map == "smooth":
            std = (low + (high - low) * torch.sigmoid(2 * free)).exp()
        else:
            std = free.clamp(low, high).exp()
        before = mean + std * noise
        # Not torch's TanhTransform: its softplus cuts off at 20, an error of 4e-9.
        log_slope = -2 * torch.cosh(before).log()
        # Nor the Gaussian's density at `before`, which loses the noise where std is tiny.
        log_prob = (Normal(0, 1).log_prob(noise) - std.log() - log_slope).sum(dim=-1)
        return torch.tanh(before), log_prob, mean, std

    def _twins(self, pair):
        first, second = pair
        pessimism = self.config.agent.pessimism
        smaller, larger = torch.minimum(first, second), torch.maximum(first, second)
        return (1 + pessimism) / 2 * smaller + (1 - pessimism) / 2 * larger

    def tensors(self):
        """Everything learnable and Adam's moments, by the names of `flatten`."""
        found = {}
        found |= _named("actor", [self.actor], self.actor_adam, stacked=False)
        found |= _named("temperature", [self.log_alpha], self.alpha_adam, stacked=False)
        found |= _named("critic", self.critics, self.critic_adam)
        for name in self.targets[0]:
            found[f"target/{name}"] = torch.stack([net[name] for net in self.targets])
        if self.obac:
            found |= _named("value", self.values, self.value_adam)
        return found


def _named(kind, nets, adam, stacked=True):
    def joined(parts):
        return (torch.stack(parts) if stacked else parts[0]).detach()

    found = {}
    for name in nets[0]:
        parts = [net[name] for net in nets]
        found[f"{kind}/{name}"] = joined(parts)
        states = [adam.state[part] for part in parts]
        if all(states):
            found[f"{kind}_optimiser/mean/{name}"] = joined([at["exp_avg"] for at in states])
            found[f"{kind}_optimiser/square/{name}"] = joined([at["exp_avg_sq"] for at in states])
    return found


def _member(tree, k):
    return {name: tensor[k].detach().double().clone() for name, tensor in tree.items()}


def _leaves(tree):
    return {name: t.detach().double().clone().requires_grad_() for name, t in tree.items()}


def _float32(rate):
    """Our learning rates are kept in single precision."""
    assert math.isfinite(rate)
    return float(torch.tensor(rate, dtype=torch.float32))
