"""A read-only view of an agent's networks for probes and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import Tensor

from fog.agent.backend import Backend
from fog.algorithms.state import State
from fog.events import Loss
from fog.networks import (
    Params,
    actor_forward,
    actor_layers,
    critic_forward,
    critic_layers,
    members,
)
from fog.replay.batch import Batch

Critic = Literal["online", "offline", "online_target", "offline_target"]


class Networks:
    """Networks of an agent as they are at the time of the call.

    Nothing here draws random numbers or writes to the agent. Trees are live: read them before the
    next update, or clone them. Gradients may be taken through every function.
    """

    def __init__(self, state: Callable[[], State], backend: Backend) -> None:
        self._state = state
        self._backend = backend
        self.hyper = backend.hyper

    @property
    def state(self) -> State:
        """Every tensor of the agent, live."""
        return self._state()

    @property
    def critics(self) -> tuple[Critic, ...]:
        """Names of the critics this agent has, targets left out."""
        return ("online", "offline") if self.hyper.offline else ("online",)

    @property
    def depth(self) -> int:
        """Residual blocks of the critics."""
        return self._state().depth

    @property
    def temperature(self) -> Tensor:
        """Entropy temperature alpha."""
        return self._state().temperature["log"].detach().exp()

    def critic(self, which: Critic = "online") -> Params:
        """The tree of one pair of twins (ensemble dimension 2).

        Raises:
            ValueError: SAC has no offline critics.
        """
        state = self._state()
        if which.startswith("offline") and not self.hyper.offline:
            raise ValueError("this agent has no offline critics: its backbone is sac")
        tree = state.target if which.endswith("_target") else state.critic
        return members(tree, 2, 4) if which.startswith("offline") else members(tree, 0, 2)

    def actor(self) -> Params:
        """The policy's tree."""
        return dict(self._state().actor)

    def value_net(self) -> Params:
        """The tree of V, an ensemble of one; empty for SAC."""
        return dict(self._state().value)

    def q_values(self, obs: Tensor, action: Tensor, which: Critic = "online") -> Tensor:
        """Twin values, (2, B)."""
        inputs = torch.cat([obs, action], dim=-1)
        return critic_forward(self.critic(which), inputs, self.hyper.activation)

    def q_layers(
        self,
        obs: Tensor,
        action: Tensor,
        which: Critic = "online",
        perturbation: Mapping[str, Tensor] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Twin values and every hidden output, see `fog.networks.critic_layers`."""
        inputs = torch.cat([obs, action], dim=-1)
        return critic_layers(self.critic(which), inputs, self.hyper.activation, perturbation)

    def features(self, obs: Tensor, action: Tensor, which: Critic = "online") -> Tensor:
        """Penultimate features of the twins, (2, B, width)."""
        return self.q_layers(obs, action, which)[1]["features"]

    def value(self, obs: Tensor) -> Tensor:
        """V(s), (B,)."""
        return critic_forward(self._state().value, obs, self.hyper.activation)[0]

    def policy(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log standard deviation before squashing, each (B, act_dim)."""
        return actor_forward(self._state().actor, obs, self.hyper.activation, self.hyper.log_std)

    def policy_layers(
        self, obs: Tensor, perturbation: Mapping[str, Tensor] | None = None
    ) -> tuple[tuple[Tensor, Tensor], dict[str, Tensor]]:
        """The policy's Gaussian and every hidden output, see `fog.networks.actor_layers`."""
        return actor_layers(
            self._state().actor, obs, self.hyper.activation, self.hyper.log_std, perturbation
        )

    def transition_losses(self, batch: Batch, noise: Tensor) -> dict[str, Loss]:
        """Training losses per transition by network; noise (B, act_dim) is the caller's."""
        return self._backend.transition_losses(self._state(), batch, noise, self.hyper)
