"""Everything an agent learns, as one tree of tensors that flattens to a dictionary."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fog.algorithms.optimiser import Optimiser, init_optimiser
from fog.errors import UserError
from fog.networks import (
    Params,
    depth_of,
    grow_critic,
    init_actor,
    init_critic,
)
from fog.records.sizes import NetworkSpec, Shapes
from fog.settings.config import AgentConfig

_SEPARATOR = "/"


class State(NamedTuple):
    """Parameters and optimisers of an agent.

    Attributes:
        actor: the policy's tree.
        critic: stacked critics: members 0 and 1 are the online twins; for OBAC members 2 and 3 are
            the offline twins.
        target: their target networks, stacked alike.
        value: OBAC's V, an ensemble of one; empty for SAC.
        temperature: one entry, "log": the logarithm of alpha.
        actor_optimiser: Adam.
        critic_optimiser: AdamW of all stacked critics (elementwise, so stacking changes nothing).
        value_optimiser: AdamW of V.
        temperature_optimiser: Adam.
    """

    actor: Params
    critic: Params
    target: Params
    value: Params
    temperature: Params
    actor_optimiser: Optimiser
    critic_optimiser: Optimiser
    value_optimiser: Optimiser
    temperature_optimiser: Optimiser

    @property
    def depth(self) -> int:
        """Residual blocks of the critics."""
        return depth_of(self.critic)


def init_state(
    rng: np.random.Generator, spec: NetworkSpec, config: AgentConfig, device: torch.device
) -> State:
    """A newborn agent. OBAC's offline twins start as copies of the online twins."""
    depth = spec.initial_depth
    actor = init_actor(rng, spec.actor())
    critic = init_critic(rng, spec.critic(depth, ensemble=2))
    if spec.offline:
        critic = {name: torch.cat([twins, twins]) for name, twins in critic.items()}
    value = init_critic(rng, spec.value(depth))
    temperature = {"log": torch.tensor(math.log(config.initial_temperature))}
    actor, critic, value, temperature = (
        {name: tensor.to(device) for name, tensor in tree.items()}
        for tree in (actor, critic, value, temperature)
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


def expand_state(
    state: State, rng: np.random.Generator, spec: NetworkSpec, config: AgentConfig
) -> State:
    """Append one fresh block to everything called a critic; rebuild the critics' optimisers.

    Online critics, offline critics and V each get their own block, the targets a copy of their
    critic's. All older parameters, the actor and the temperature stay the same tensors.
    """
    depth, device = state.depth, state.temperature["log"].device
    block = _to(init_critic(rng, spec.shape.block(depth, spec.ensemble)), device)
    critic = grow_critic(state.critic, block)
    target = grow_critic(state.target, {name: tensor.clone() for name, tensor in block.items()})
    value = state.value
    if spec.offline:
        fresh = _to(init_critic(rng, spec.shape.block(depth, 1)), device)
        value = grow_critic(value, fresh)
    lr = spec.learning_rate(config.critic_lr, depth + 1)
    return state._replace(
        critic=critic,
        target=target,
        value=value,
        critic_optimiser=init_optimiser(critic, lr, device),
        value_optimiser=init_optimiser(value, lr, device),
    )


def clone_state(state: State) -> State:
    """A copy that shares no memory."""
    return unflatten({name: tensor.clone() for name, tensor in flatten(state)})


def flatten(state: State) -> Iterator[tuple[str, Tensor]]:
    """Every tensor with its name, such as "critic_optimiser/mean/stem.bias"."""
    yield from _walk("", state._asdict())


def unflatten(tensors: Mapping[str, Tensor]) -> State:
    """The inverse of `flatten`."""
    tree: dict[str, Any] = {}
    for name, tensor in tensors.items():
        *path, leaf = name.split(_SEPARATOR)
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[leaf] = tensor
    parts: dict[str, Any] = {}
    for field in State._fields:
        part = tree.get(field, {})
        # An empty tree (V of SAC) leaves no trace in the flat form.
        optimiser = field.endswith("_optimiser")
        parts[field] = Optimiser(**{"mean": {}, "square": {}} | part) if optimiser else part
    return State(**parts)


def check_fits(tensors: Mapping[str, Tensor], spec: NetworkSpec) -> None:
    """Refuse tensors that are not the state of an agent of this spec.

    Raises:
        UserError: naming the first tensor that is missing, unknown or of another shape.
    """
    prefix = f"critic{_SEPARATOR}"
    critic = {
        name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)
    }
    depth = depth_of(critic)
    expected = _state_shapes(spec, depth)
    for name in sorted(expected.keys() | tensors.keys()):
        shape = tuple(tensors[name].shape) if name in tensors else None
        if name not in expected or shape != expected[name]:
            raise UserError(
                f"agent state does not fit this config: {name} has shape {shape}, expected "
                f"{expected.get(name)}; load it with the config it was saved with"
            )


def _state_shapes(spec: NetworkSpec, depth: int) -> Shapes:
    trees: dict[str, Shapes] = {
        "actor": spec.actor(),
        "critic": spec.critic(depth),
        "target": spec.critic(depth),
        "value": spec.value(depth),
        "temperature": {"log": ()},
    }
    shapes: Shapes = {}
    for field, tree in trees.items():
        shapes |= {_SEPARATOR.join((field, name)): shape for name, shape in tree.items()}
        if field != "target":
            optimiser = f"{field}_optimiser"
            for moment in ("mean", "square"):
                for name, shape in tree.items():
                    shapes[_SEPARATOR.join((optimiser, moment, name))] = shape
            shapes |= {_SEPARATOR.join((optimiser, name)): () for name in ("step", "lr")}
    return shapes


def _walk(prefix: str, node: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(node, Tensor):
        yield prefix, node
        return
    items = node._asdict() if isinstance(node, Optimiser) else node
    for name, child in items.items():
        yield from _walk(f"{prefix}{_SEPARATOR}{name}" if prefix else name, child)


def _to(params: Params, device: torch.device) -> Params:
    return {name: tensor.to(device) for name, tensor in params.items()}
