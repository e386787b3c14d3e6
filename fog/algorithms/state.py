"""Everything an agent learns, as one tree of tensors that flattens to a dictionary.

`State` is that of SAC and OBAC. An algorithm with other networks has a named tuple of its own: a
field is a tree, or an optimiser if its name ends in "_optimiser". The functions here take any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

from fog.algorithms.optimiser import Optimiser
from fog.errors import UserError
from fog.networks import Params, depth_of
from fog.records.sizes import NetworkSpec, Shapes, is_frozen

_SEPARATOR = "/"

AnyState = TypeVar("AnyState", bound=Any)
"""The state of one algorithm."""


class State(NamedTuple):
    """Parameters and optimisers of SAC and OBAC.

    Critics are stacked: members 0 and 1 are the online twins, for OBAC 2 and 3 the offline twins;
    their targets are stacked alike. One AdamW moves them all, elementwise, so stacking changes
    nothing. `value` is OBAC's V, an ensemble of one, empty for SAC; `temperature` has one entry,
    "log": the logarithm of alpha.
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


def clone_state(state: AnyState) -> AnyState:
    """A copy that shares no memory."""
    copies = {name: tensor.clone() for name, tensor in flatten(state)}
    copy: AnyState = unflatten(copies, type(state))
    return copy


def flatten(state: Any) -> Iterator[tuple[str, Tensor]]:
    """Every tensor with its name, such as "critic_optimiser/mean/stem.bias"."""
    yield from _walk("", state._asdict())


def unflatten(tensors: Mapping[str, Tensor], kind: Any = State) -> Any:
    """The inverse of `flatten`, for a state of this kind."""
    tree: dict[str, Any] = {}
    for name, tensor in tensors.items():
        *path, leaf = name.split(_SEPARATOR)
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[leaf] = tensor
    parts: dict[str, Any] = {}
    for field in kind._fields:
        part = tree.get(field, {})
        # An empty tree (V of SAC) leaves no trace in the flat form.
        optimiser = field.endswith("_optimiser")
        parts[field] = Optimiser(**{"mean": {}, "square": {}} | part) if optimiser else part
    return kind(**parts)


def check_fits(tensors: Mapping[str, Tensor], spec: NetworkSpec) -> None:
    """Refuse tensors that are not the state of an agent of this spec; the error names the first."""
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
    shapes: Shapes = {}
    for field, tree in spec.trees(depth).items():
        shapes |= {_SEPARATOR.join((field, name)): shape for name, shape in tree.items()}
        if field not in spec.UNTRAINED:
            optimiser = f"{field}_optimiser"
            for moment in ("mean", "square"):
                for name, shape in tree.items():
                    if not is_frozen(name):
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
