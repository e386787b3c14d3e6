"""Growing and starting anew: the schedule of expansions, what each changes, and the reset.

The paper's rules. Critics gain one residual block at given numbers of updates since birth or the
last reset. Their learning rate becomes initial rate x initial dense layers / current dense layers,
and their optimisers start anew. A reset starts everything learnable anew, depth included.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from fog.algorithms.optimiser import init_optimiser
from fog.algorithms.state import AnyState, State
from fog.networks import Params, depth_of, init_actor, init_critic
from fog.records.sizes import NetworkSpec, Shapes
from fog.settings.config import AgentConfig, Config

Initialiser: TypeAlias = Callable[[np.random.Generator, Shapes], Params]
"""Fresh values of a critic or a block, such as `fog.networks.init_critic`."""


@dataclass(frozen=True)
class ExpansionSchedule:
    """When critics grow: a pure function of the updates since birth or the last reset."""

    at: tuple[int, ...]
    initial_depth: int
    maximal_depth: int

    @classmethod
    def from_config(cls, config: Config) -> ExpansionSchedule:
        """The schedule of a run; entries beyond the maximal depth never happen."""
        network = config.network
        room = network.maximal_depth - network.initial_depth
        return cls(
            config.lifecycle.expansion_updates[:room],
            network.initial_depth,
            network.maximal_depth,
        )

    def depth_at(self, updates: int) -> int:
        """Depth an agent has once it has made `updates` updates since birth."""
        return self.initial_depth + bisect_right(self.at, updates)

    def updates_until(self, updates: int) -> int | None:
        """Updates left before the next expansion, or None if there is none to come."""
        index = bisect_right(self.at, updates)
        return self.at[index] - updates if index < len(self.at) else None


def newborn(
    rng: np.random.Generator, spec: NetworkSpec, config: AgentConfig, device: torch.device
) -> State:
    """Fresh networks and optimisers: an agent at birth, and after every reset.

    OBAC's offline twins start as copies of the online twins.
    """
    depth = spec.initial_depth
    actor = init_actor(rng, spec.actor())
    critic = init_critic(rng, spec.critic(depth, ensemble=2))
    if spec.offline:
        critic = {name: torch.cat([twins, twins]) for name, twins in critic.items()}
    value = init_critic(rng, spec.value(depth))
    temperature = {"log": torch.tensor(math.log(config.initial_temperature))}
    actor, critic, value, temperature = (
        on_device(tree, device) for tree in (actor, critic, value, temperature)
    )
    return State(
        actor=actor,
        critic=critic,
        target={name: tensor.clone() for name, tensor in critic.items()},
        value=value,
        temperature=temperature,
        actor_optimiser=init_optimiser(actor, config.actor_lr, device),
        critic_optimiser=init_optimiser(critic, config.critic_lr, device),
        value_optimiser=init_optimiser(value, config.critic_lr, device),
        temperature_optimiser=init_optimiser(temperature, config.temperature_lr, device),
    )


def expanded(
    state: AnyState,
    rng: np.random.Generator,
    spec: NetworkSpec,
    config: AgentConfig,
    init: Initialiser = init_critic,
) -> AnyState:
    """The agent with one fresh block in everything called a critic, and its optimisers anew.

    Online critics, offline critics and V each get their own block, the targets a copy of their
    critic's. All older parameters, the actor and the temperature stay the same tensors.
    """
    depth, device = depth_of(state.critic), state.critic["stem.weight"].device
    block = on_device(init(rng, spec.block(depth, spec.ensemble)), device)
    critic = state.critic | block
    lr = spec.learning_rate(config.critic_lr, depth + 1)
    changes: dict[str, Any] = {
        "critic": critic,
        "target": state.target | {name: tensor.clone() for name, tensor in block.items()},
        "critic_optimiser": init_optimiser(critic, lr, device),
    }
    if "value" in state._fields:
        fresh = init(rng, spec.block(depth, 1)) if spec.offline else {}
        changes["value"] = state.value | on_device(fresh, device)
        changes["value_optimiser"] = init_optimiser(changes["value"], lr, device)
    grown: AnyState = state._replace(**changes)
    return grown


def on_device(params: Params, device: torch.device) -> Params:
    """The same tree on a device."""
    return {name: tensor.to(device) for name, tensor in params.items()}
