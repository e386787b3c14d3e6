"""Our agents as subjects of the probe protocol: the losses are those of training, tapped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import torch
from torch import Tensor

from fog import losses
from fog.agents.gradient import gradient
from fog.events import Facts, Hidden, Loss, Transitions
from fog.networks import (
    Params,
    Tap,
    actor_forward,
    critic_forward,
    sample_action,
)
from fog.replay import Batch

if TYPE_CHECKING:
    from fog.agents import Agent
    from fog.config import Config

Which: TypeAlias = Literal["online", "offline"]

_CACHED_VALUES = 131_072
"""Activations of one layer of one member per chunk: 512 KB, so that a layer stays in cache."""


def facts_of(config: Config) -> Facts:
    """What a config tells probes of any library."""
    run, replay = config.run, config.replay
    return Facts(
        seed=run.seed,
        steps=run.steps,
        window_steps=run.window_steps,
        batch_size=config.agent.batch_size,
        discount=config.agent.discount,
        capacity=replay.capacity,
        sampler=replay.sampler,
        epsilon=replay.epsilon,
        tau=replay.tau,
        settings=config.flat(),
    )


class _Watch:
    """A tap that keeps every hidden output and a zero added to it, whose gradient is wanted."""

    def __init__(self) -> None:
        self.outputs: dict[str, Tensor] = {}
        self.zeros: dict[str, Tensor] = {}

    def __call__(self, name: str, output: Tensor) -> Tensor:
        zero = torch.zeros_like(output, requires_grad=True)
        # The residual sum "features" is not a layer of neurons, only a sum of layers.
        if name != "features":
            self.outputs[name], self.zeros[name] = output.detach(), zero
        return output + zero


class AgentSubject:
    """SAC or OBAC under observation; see `fog.events.Subject`."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._networks = agent.networks

    @property
    def device(self) -> torch.device:
        """See `Subject`."""
        return self._agent.device

    @property
    def act_dim(self) -> int:
        """See `Subject`."""
        return self._agent.spec.act_dim

    @property
    def critics(self) -> tuple[str, ...]:
        """See `Subject`."""
        return self._networks.critics

    @property
    def networks(self) -> tuple[str, ...]:
        """See `Subject`."""
        return (
            (*self.critics, "value", "actor") if self._agent.rule.offline else ("online", "actor")
        )

    @property
    def chunk_rows(self) -> int:
        """See `Subject`; on a GPU, launches weigh more than caches."""
        rows = _CACHED_VALUES // self._agent.spec.width
        return max(64, min(4096, rows)) if self.device.type == "cpu" else 16_384

    def losses(self, batch: Transitions, noise: Tensor) -> dict[str, Loss]:
        """See `Subject`: exactly `fog.agents.transition_losses`."""
        found = self._networks.transition_losses(_batch(batch), noise)
        named = {"online": Loss(found.critic, found.target)}
        if found.offline_critic is not None and found.offline_target is not None:
            named["offline"] = Loss(found.offline_critic, found.offline_target)
        if found.value is not None and found.value_target is not None:
            named["value"] = Loss(found.value, found.value_target)
        return named

    @torch.no_grad()
    def q_values(self, critic: str, obs: Tensor, action: Tensor) -> Tensor:
        """See `Subject`."""
        return self._networks.q_values(obs, action, cast(Which, critic))

    @torch.no_grad()
    def features(self, network: str, obs: Tensor, action: Tensor) -> Tensor:
        """See `Subject`."""
        if network == "actor":
            return self._networks.policy_layers(obs)[1]["hidden1"].unsqueeze(0)
        seen: dict[str, Tensor] = {}

        def tap(name: str, output: Tensor) -> Tensor:
            if name == "features":
                seen[name] = output
            return output

        inputs = obs if network == "value" else torch.cat([obs, action], dim=-1)
        critic_forward(self.parameters(network), inputs, self._agent.rule.activation, tap)
        return seen["features"]

    @torch.no_grad()
    def action(self, obs: Tensor) -> Tensor:
        """See `Subject`."""
        return torch.tanh(self._networks.policy(obs)[0])

    @torch.no_grad()
    def entropy_bonus(self, obs: Tensor, noise: Tensor) -> Tensor:
        """See `Subject`."""
        drawn = sample_action(*self._networks.policy(obs), noise)
        return -self._networks.temperature * drawn.log_prob

    def hidden(self, network: str, batch: Transitions, noise: Tensor) -> dict[str, Hidden]:
        """See `Subject`."""
        watch = _Watch()
        with torch.enable_grad():
            loss = self._loss(network, self.parameters(network), batch, noise, watch)
            grads = torch.autograd.grad(loss.sum(), list(watch.zeros.values()))
        found = {}
        for name, grad in zip(watch.zeros, grads, strict=True):
            output = watch.outputs[name]
            # The actor has no ensemble dimension.
            pair = (output, grad) if output.dim() == 3 else (output[None], grad[None])
            found[name] = Hidden(*pair)
        return found

    def parameters(self, network: str) -> Params:
        """See `Subject`."""
        if network == "actor":
            return self._networks.actor()
        if network == "value":
            return self._networks.value_net()
        return self._networks.critic(cast(Which, network))

    def gradients(self, network: str, batch: Transitions, noise: Tensor) -> Params:
        """See `Subject`."""

        def loss(params: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            return self._loss(network, params, batch, noise).mean(), ()

        return gradient(loss, self.parameters(network))[2]

    def evaluate(
        self, critic: str, params: Mapping[str, Tensor], obs: Tensor, action: Tensor
    ) -> Tensor:
        """See `Subject`."""
        inputs = torch.cat([obs, action], dim=-1)
        return critic_forward(dict(params), inputs, self._agent.rule.activation)

    def _loss(
        self,
        network: str,
        params: Params,
        batch: Transitions,
        noise: Tensor,
        tap: Tap | None = None,
    ) -> Tensor:
        """The training loss of one network per transition, as a function of its parameters."""
        rule = self._agent.rule
        if network == "actor":
            return self._actor_loss(params, batch, noise, tap)
        target = self.losses(batch, noise)[network].target
        inputs = batch.obs if network == "value" else torch.cat([batch.obs, batch.action], dim=-1)
        values = critic_forward(params, inputs, rule.activation, tap)
        if network == "value":
            return losses.expectile_loss(target - values[0], rule.expectile)
        return losses.critic_loss(values, target)

    def _actor_loss(
        self, params: Params, batch: Transitions, noise: Tensor, tap: Tap | None
    ) -> Tensor:
        agent, rule, networks = self._agent, self._agent.rule, self._networks
        mean, log_std = actor_forward(params, batch.obs, rule.activation, rule.log_std_bounds, tap)
        drawn = sample_action(mean, log_std, noise)
        value = losses.combine(networks.q_values(batch.obs, drawn.action), rule.pessimism)
        loss = losses.actor_loss(drawn.log_prob, value, networks.temperature)
        if not agent.bc_active:
            return loss
        offline = losses.combine(networks.q_values(batch.obs, batch.action, "offline"), 1.0)
        gate = losses.cloning_gate(value, offline).to(loss.dtype)
        density = losses.cloning_density(mean, log_std, batch.action, rule.log_std_bounds)
        return loss - gate * rule.bc_weight * density


def _batch(batch: Transitions) -> Batch:
    """The loss function reads no weights, so a batch that a probe made needs none."""
    if isinstance(batch, Batch):
        return batch
    weight = torch.ones_like(batch.reward)
    return Batch(batch.obs, batch.action, batch.reward, batch.bootstrap, batch.next_obs, weight)
