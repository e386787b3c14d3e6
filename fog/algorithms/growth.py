"""Growing and starting anew: the schedule of expansions, what each changes, and the reset.

The paper's rules. Critics gain one residual block at given numbers of updates since birth or the
last reset. Their learning rate becomes initial rate x initial dense layers / current dense layers,
and their optimisers start anew. A reset starts everything learnable anew, depth included.

With `growth: injection` critics gain a plasticity injection instead (Nikishin et al., 2023), which
preserves what they compute, see `fog.networks.critic`; their learning rate stays.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from fog.algorithms.birth import born, learning_rates, on_device
from fog.algorithms.optimiser import init_optimiser
from fog.algorithms.state import AnyState, State
from fog.networks import Params, depth_of, init_actor, init_critic
from fog.records.sizes import NetworkSpec, Shapes, frozen_head, head_of
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
    trees = {
        "actor": init_actor(rng, spec.actor()),
        "critic": init_critic(rng, spec.critic(depth, ensemble=2)),
        "value": init_critic(rng, spec.value(depth)),
        "temperature": {"log": torch.tensor(math.log(config.initial_temperature))},
    }
    if spec.offline:
        twins = trees["critic"].items()
        trees["critic"] = {name: torch.cat([tensor, tensor]) for name, tensor in twins}
    return State(**born(trees, learning_rates(config) | {"value": config.critic_lr}, device))


def expanded(
    state: AnyState,
    rng: np.random.Generator,
    spec: NetworkSpec,
    config: AgentConfig,
    init: Initialiser = init_critic,
) -> AnyState:
    """The agent with one fresh block (or injection) in every critic, and its optimisers anew.

    Online critics, offline critics and V each get their own block, the targets a copy of their
    critic's. All older parameters, the actor and the temperature stay the same tensors.
    """
    depth, device = depth_of(state.critic), state.critic["head.weight"].device
    fresh = on_device(_fresh(state.critic, rng, spec, depth, init), device)
    critic, target = (_joined(tree, fresh, spec) for tree in (state.critic, state.target))
    lr = spec.learning_rate(config.critic_lr, depth + 1)
    changes: dict[str, Any] = {
        "critic": critic,
        "target": target,
        "critic_optimiser": init_optimiser(critic, lr, device),
    }
    if "value" in state._fields:
        fresh = _fresh(state.value, rng, spec, depth, init) if spec.offline else {}
        changes["value"] = _joined(state.value, on_device(fresh, device), spec)
        changes["value_optimiser"] = init_optimiser(changes["value"], lr, device)
    grown: AnyState = state._replace(**changes)
    return grown


def _fresh(
    tree: Params, rng: np.random.Generator, spec: NetworkSpec, depth: int, init: Initialiser
) -> Params:
    """The next block of these critics, or for an injection a new head."""
    if not spec.injects:
        return init(rng, spec.block(depth, len(tree["head.weight"])))
    return init(rng, {name: tuple(tensor.shape) for name, tensor in head_of(tree).items()})


def _joined(tree: Params, fresh: Params, spec: NetworkSpec) -> Params:
    """The tree with the block, or with its head frozen and the difference of two new ones added.

    Old tensors stay the same objects; those of `fresh` are copied.
    """
    copies = [{name: tensor.clone() for name, tensor in fresh.items()} for _ in range(2)]
    if not spec.injects or not tree:
        return tree | copies[0]
    index = 2 * (depth_of(tree) - spec.initial_depth)
    frozen = frozen_head(head_of(tree), index) | frozen_head(copies[1], index + 1)
    return tree | copies[0] | frozen
