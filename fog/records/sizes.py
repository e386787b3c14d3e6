"""Shapes of every network, and how many parameters that makes: the one source of sizes.

Networks are built, checked and costed from these shapes, and the analysis of recorded runs counts
with them, without torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

Shapes: TypeAlias = dict[str, tuple[int, ...]]
"""Shape of every tensor of a tree, for counting and checking without allocating."""

ACTOR_HIDDEN = ("hidden0", "hidden1")
"""The actor's hidden layers; with the head it has the paper's three dense layers."""


@dataclass(frozen=True)
class CriticShape:
    """How a critic is built, except its inputs, its ensemble and its current depth."""

    width: int
    stem_layers: int = 1
    """Dense layers before the first block: 1 is BRO's network, 2 the SAC family's MLP."""
    layer_norm: bool = True
    outputs: int = 1
    """One value, or as many quantiles of it."""

    def dense_layers(self, depth: int) -> int:
        """Dense layers with `depth` blocks, head included: stem, two per block, head.

        The paper counts this way: SAC's two hidden layers and head grow "from 3 to 7, 2 at a time".
        """
        return self.stem_layers + 2 * depth + 1

    def critic(self, ensemble: int, input_dim: int, depth: int) -> Shapes:
        """The tree of a critic with `depth` blocks."""
        shapes = self._dense("stem", ensemble, input_dim)
        if self.stem_layers == 2:
            shapes |= self._dense("hidden", ensemble, self.width)
        for index in range(depth):
            shapes |= self.block(index, ensemble)
        return shapes | {
            "head.weight": (ensemble, self.width, self.outputs),
            "head.bias": (ensemble, 1, self.outputs),
        }

    def block(self, index: int, ensemble: int) -> Shapes:
        """The tree of residual block `index`."""
        inner, outer = block_keys(index)
        return self._dense(inner, ensemble, self.width) | self._dense(outer, ensemble, self.width)

    def _dense(self, key: str, ensemble: int, fan_in: int) -> Shapes:
        shapes: Shapes = {f"{key}.weight": (ensemble, fan_in, self.width)}
        return shapes | {f"{key}.{part}": (ensemble, 1, self.width) for part in self._parts}

    @property
    def _parts(self) -> tuple[str, ...]:
        return ("bias", "scale", "offset") if self.layer_norm else ("bias",)


def block_keys(index: int) -> tuple[str, str]:
    """Names of the two dense layers of a block: the inner one is followed by the activation."""
    return f"block{index}.inner", f"block{index}.outer"


def actor_shapes(obs_dim: int, act_dim: int, width: int, layer_norm: bool) -> Shapes:
    """The tree of an actor; `layer_norm` puts a LayerNorm after each hidden dense layer."""
    shapes: Shapes = {}
    for key, fan_in in zip(ACTOR_HIDDEN, (obs_dim, width), strict=True):
        shapes[f"{key}.weight"] = (fan_in, width)
        for part in ("bias", "scale", "offset") if layer_norm else ("bias",):
            shapes[f"{key}.{part}"] = (width,)
    return shapes | {"head.weight": (width, 2 * act_dim), "head.bias": (2 * act_dim,)}


@dataclass(frozen=True)
class NetworkSpec:
    """Sizes of all networks of SAC or OBAC, except the critics' current depth.

    Algorithms with other networks derive their own, see `fog.records.specs`.
    """

    UNTRAINED: ClassVar[tuple[str, ...]] = ("target",)
    """Trees of `trees` that no optimiser moves."""

    obs_dim: int
    act_dim: int
    ensemble: int
    """Critic members: 2 for SAC; 4 for OBAC, online twins first, then offline twins."""
    shape: CriticShape
    initial_depth: int
    maximal_depth: int
    actor_layer_norm: bool
    injects: bool = False
    """Whether an expansion is a plasticity injection and not one more block, see `frozen_head`."""

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], obs_dim: int, act_dim: int) -> Self:
        """The networks of a run with these settings, by bare name, on a task of these dimensions.

        Runs of the first edition have no `stem_layers` and `critic_layer_norm`: their critics were
        residual with a stem of one, or plain.
        """
        plain = settings.get("critic") == "plain"
        return cls(
            obs_dim=obs_dim,
            act_dim=act_dim,
            ensemble=4 if settings["backbone"] == "obac" else 2,
            shape=CriticShape(
                width=settings["width"],
                stem_layers=settings.get("stem_layers", 2 if plain else 1),
                layer_norm=settings.get("critic_layer_norm", not plain),
            ),
            initial_depth=settings["initial_depth"],
            maximal_depth=settings["maximal_depth"],
            actor_layer_norm=settings["actor_layer_norm"],
            injects=settings.get("growth") == "injection",
        )

    @property
    def width(self) -> int:
        """Hidden units of every layer."""
        return self.shape.width

    @property
    def offline(self) -> bool:
        """Whether there are offline critics and V."""
        return self.ensemble == 4

    def actor(self) -> Shapes:
        """The actor's tree."""
        return actor_shapes(self.obs_dim, self.act_dim, self.width, self.actor_layer_norm)

    def critic(self, depth: int, ensemble: int | None = None) -> Shapes:
        """The tree of the stacked critics (or of `ensemble` of them) with `depth` blocks."""
        size = self.ensemble if ensemble is None else ensemble
        return self._grown(size, self.obs_dim + self.act_dim, depth)

    def value(self, depth: int) -> Shapes:
        """The tree of V; empty for SAC."""
        return self._grown(1, self.obs_dim, depth) if self.offline else {}

    def _grown(self, ensemble: int, inputs: int, depth: int) -> Shapes:
        if not self.injects:
            return self.shape.critic(ensemble, inputs, depth)
        shapes = self.shape.critic(ensemble, inputs, self.initial_depth)
        head = head_of(shapes)
        for index in range(2 * (depth - self.initial_depth)):
            shapes |= frozen_head(head, index)
        return shapes

    def explorer(self) -> Shapes:
        """The tree of an actor beside the policy that only explores; none here."""
        return {}

    def block(self, index: int, ensemble: int) -> Shapes:
        """What critics gain when they grow: the tree of block `index`."""
        return self.shape.block(index, ensemble)

    def trees(self, depth: int) -> dict[str, Shapes]:
        """Every tree of an agent's state with `depth` blocks, but for the optimisers."""
        critic = self.critic(depth)
        return {
            "actor": self.actor(),
            "critic": critic,
            "target": critic,
            "value": self.value(depth),
            "temperature": {"log": ()},
        }

    def dense_layers(self, depth: int) -> int:
        """Dense layers of a critic with `depth` blocks, head included; injections add none."""
        return self.shape.dense_layers(self.initial_depth if self.injects else depth)

    def learning_rate(self, initial: float, depth: int) -> float:
        """Critic learning rate: initial x initial dense layers / current dense layers."""
        if self.injects:
            return initial
        return initial * self.dense_layers(self.initial_depth) / self.dense_layers(depth)

    def parameters(self, depth: int) -> dict[str, int]:
        """Parameters by network at `depth`, with totals.

        `trainable` counts what an optimiser moves (actor, online and offline critics, V,
        temperature); `total` adds the target networks. V has no target. LayerNorm and biases are
        counted.
        """
        twins = count(self.critic(depth, ensemble=2))
        counts = {"actor": count(self.actor()), "critic": twins, "critic_target": twins}
        if self.offline:
            counts |= {
                "offline_critic": twins,
                "offline_critic_target": twins,
                "value": count(self.value(depth)),
            }
        trees = (self.critic(depth), self.value(depth))
        frozen = sum(count({k: v for k, v in tree.items() if is_frozen(k)}) for tree in trees)
        return with_totals(counts | {"temperature": 1}, frozen)


def with_totals(counts: dict[str, int], frozen: int = 0) -> dict[str, int]:
    """Parameters by network, with what is trained and what there is, targets included."""
    total = sum(counts.values())
    targets = sum(size for name, size in counts.items() if name.endswith("_target"))
    return counts | {"trainable": total - targets - frozen, "total": total}


# Plasticity injection (Nikishin et al., 2023): parts of a critic's tree that are never trained

Tree = TypeVar("Tree", bound=dict[str, Any])


def head_of(tree: Tree) -> Tree:
    """What an injection replaces: all but the stem and what earlier ones have frozen."""
    kept = ("stem.", "hidden.", "frozen")
    return type(tree)({k: v for k, v in tree.items() if not k.startswith(kept)})


def frozen_head(head: Tree, index: int) -> Tree:
    """A head under the names of frozen part `index`; even ones are added, odd ones subtracted."""
    return type(head)({f"frozen{index}.{name}": value for name, value in head.items()})


def is_frozen(name: str) -> bool:
    """Whether a tensor of a critic's tree is not trained."""
    return name.startswith("frozen")


def count(shapes: Shapes) -> int:
    """Parameters of a tree."""
    return sum(prod(shape) for shape in shapes.values())
