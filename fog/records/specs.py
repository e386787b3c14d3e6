"""Sizes of every algorithm's networks: the registry behind `spec_of`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from fog.errors import ConfigError
from fog.records.sizes import CriticShape, NetworkSpec, Shapes, block_keys, count, with_totals
from fog.records.sparsity import sparse_layers


@dataclass(frozen=True)
class BroSpec(NetworkSpec):
    """BRO: quantile critics, and two actors that are residual networks of one block.

    The second, the optimistic one, sees the first one's mean beside the observation and shifts it;
    its head has no bias.
    """

    actor_width: int = 256

    ACTOR_DEPTH = 1

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], obs_dim: int, act_dim: int) -> Self:
        """See `NetworkSpec.from_settings`."""
        return cls(
            obs_dim=obs_dim,
            act_dim=act_dim,
            ensemble=2,
            shape=CriticShape(settings["width"], outputs=settings["quantiles"]),
            initial_depth=settings["initial_depth"],
            maximal_depth=settings["maximal_depth"],
            actor_layer_norm=True,
            injects=settings.get("growth") == "injection",
            actor_width=settings["actor_width"] or -(-settings["width"] // 2),
        )

    def actor(self) -> Shapes:
        """See `NetworkSpec.actor`: an ensemble of one."""
        shape = CriticShape(self.actor_width, outputs=2 * self.act_dim)
        return shape.critic(1, self.obs_dim, self.ACTOR_DEPTH)

    def explorer(self) -> Shapes:
        """The optimistic actor's tree."""
        shape = CriticShape(self.actor_width, outputs=self.act_dim)
        tree = shape.critic(1, self.obs_dim + self.act_dim, self.ACTOR_DEPTH)
        return {name: shape for name, shape in tree.items() if name != "head.bias"}

    def trees(self, depth: int) -> dict[str, Shapes]:
        """See `NetworkSpec.trees`."""
        critic = self.critic(depth)
        return {
            "actor": self.actor(),
            "critic": critic,
            "target": critic,
            "explorer": self.explorer(),
            "temperature": {"log": ()},
            "optimism": {"free": ()},
            "regulariser": {"free": ()},
        }

    def parameters(self, depth: int) -> dict[str, int]:
        """See `NetworkSpec.parameters`."""
        twins = count(self.critic(depth))
        counts = {"actor": count(self.actor()), "critic": twins, "critic_target": twins}
        counts |= {"optimistic_actor": count(self.explorer()), "temperature": 1, "duals": 2}
        return with_totals(counts)


@dataclass(frozen=True)
class SimbaSpec(NetworkSpec):
    """SimBa: blocks with LayerNorm before them and inner layers four times wider."""

    UNTRAINED = ("target", "normaliser")

    actor_width: int = 128

    ACTOR_DEPTH = 1

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], obs_dim: int, act_dim: int) -> Self:
        """See `NetworkSpec.from_settings`; there are no injections."""
        if settings.get("growth") == "injection":
            raise ConfigError("growth: simba grows by blocks; injection serves sac, obac and bro")
        return cls(
            obs_dim=obs_dim,
            act_dim=act_dim,
            ensemble=settings["critics"],
            shape=CriticShape(settings["width"]),
            initial_depth=settings["initial_depth"],
            maximal_depth=settings["maximal_depth"],
            actor_layer_norm=True,
            actor_width=settings["actor_width"] or -(-settings["width"] // 4),
        )

    def actor(self) -> Shapes:
        """See `NetworkSpec.actor`: an ensemble of one."""
        heads = 2 * self.act_dim
        return _pre_norm(1, self.obs_dim, self.actor_width, self.ACTOR_DEPTH, heads)

    def critic(self, depth: int, ensemble: int | None = None) -> Shapes:
        """See `NetworkSpec.critic`."""
        size = self.ensemble if ensemble is None else ensemble
        return _pre_norm(size, self.obs_dim + self.act_dim, self.width, depth, 1)

    def block(self, index: int, ensemble: int) -> Shapes:
        """See `NetworkSpec.block`."""
        return _pre_norm_block(index, ensemble, self.width)

    def trees(self, depth: int) -> dict[str, Shapes]:
        """See `NetworkSpec.trees`."""
        critic, seen = self.critic(depth), (self.obs_dim,)
        return {
            "actor": self.actor(),
            "critic": critic,
            "target": critic,
            "temperature": {"log": ()},
            "normaliser": {"mean": seen, "variance": seen, "count": ()},
        }

    def parameters(self, depth: int) -> dict[str, int]:
        """See `NetworkSpec.parameters`; statistics of observations are not parameters."""
        critics = count(self.critic(depth))
        counts = {"actor": count(self.actor()), "critic": critics, "critic_target": critics}
        return with_totals(counts | {"temperature": 1})


@dataclass(frozen=True)
class NeSpec(NetworkSpec):
    """Neuroplastic Expansion: MLPs with masks, the last hidden layer of a critic with LayerNorm."""

    UNTRAINED = ("target", "actor_target", "actor_mask", "critic_mask", "clock")

    hidden_layers: int = 3
    """Of a critic; the actor has one less."""

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], obs_dim: int, act_dim: int) -> Self:
        """See `NetworkSpec.from_settings`; there are no blocks."""
        if settings["maximal_depth"] > 0:
            raise ConfigError("maximal_depth: must be 0, ne grows by weights and not by blocks")
        layers = settings["hidden_layers"]
        return cls(
            obs_dim=obs_dim,
            act_dim=act_dim,
            ensemble=2,
            shape=CriticShape(settings["width"], stem_layers=layers),
            initial_depth=0,
            maximal_depth=0,
            actor_layer_norm=False,
            hidden_layers=layers,
        )

    def actor(self) -> Shapes:
        """See `NetworkSpec.actor`: an ensemble of one."""
        return _mlp(1, self.obs_dim, self.width, self.hidden_layers - 1, self.act_dim)

    def critic(self, depth: int, ensemble: int | None = None) -> Shapes:
        """See `NetworkSpec.critic`."""
        size = self.ensemble if ensemble is None else ensemble
        shapes = _mlp(size, self.obs_dim + self.act_dim, self.width, self.hidden_layers, 1)
        last = f"hidden{self.hidden_layers - 1}"
        row = (size, 1, self.width)
        return shapes | {f"{last}.scale": row, f"{last}.offset": row}

    def trees(self, depth: int) -> dict[str, Shapes]:
        """See `NetworkSpec.trees`."""
        actor, critic = self.actor(), self.critic(depth)
        clock = ("updates", "critic_calls", "critic_ended", "actor_calls", "actor_ended", "active")
        return {
            "actor": actor,
            "critic": critic,
            "target": critic,
            "actor_target": actor,
            "actor_mask": {name: actor[name] for name in sparse_layers(actor)},
            "critic_mask": {name: critic[name] for name in sparse_layers(critic)},
            "clock": dict.fromkeys(clock, ()),
        }

    def parameters(self, depth: int) -> dict[str, int]:
        """See `NetworkSpec.parameters`; masked weights are counted."""
        actor, twins = count(self.actor()), count(self.critic(depth))
        counts = {"actor": actor, "actor_target": actor, "critic": twins, "critic_target": twins}
        return with_totals(counts)


def _mlp(ensemble: int, inputs: int, width: int, layers: int, outputs: int) -> Shapes:
    shapes: Shapes = {}
    for index in range(layers):
        fan_in = width if index else inputs
        shapes[f"hidden{index}.weight"] = (ensemble, fan_in, width)
        shapes[f"hidden{index}.bias"] = (ensemble, 1, width)
    return shapes | {
        "head.weight": (ensemble, width, outputs),
        "head.bias": (ensemble, 1, outputs),
    }


def _pre_norm(ensemble: int, inputs: int, width: int, depth: int, outputs: int) -> Shapes:
    one = (ensemble, 1, width)
    shapes: Shapes = {"stem.weight": (ensemble, inputs, width), "stem.bias": one}
    for index in range(depth):
        shapes |= _pre_norm_block(index, ensemble, width)
    shapes |= {"norm.scale": one, "norm.offset": one}
    return shapes | {
        "head.weight": (ensemble, width, outputs),
        "head.bias": (ensemble, 1, outputs),
    }


def _pre_norm_block(index: int, ensemble: int, width: int) -> Shapes:
    inner, outer = block_keys(index)
    one, wide = (ensemble, 1, width), 4 * width
    return {
        f"block{index}.scale": one,
        f"block{index}.offset": one,
        f"{inner}.weight": (ensemble, width, wide),
        f"{inner}.bias": (ensemble, 1, wide),
        f"{outer}.weight": (ensemble, wide, width),
        f"{outer}.bias": one,
    }


SPECS: dict[str, type[NetworkSpec]] = {
    "sac": NetworkSpec,
    "obac": NetworkSpec,
    "bro": BroSpec,
    "simba": SimbaSpec,
    "ne": NeSpec,
}


def spec_of(settings: Mapping[str, Any], obs_dim: int, act_dim: int) -> NetworkSpec:
    """The networks of a run with these settings, by bare name, on a task of these dimensions."""
    return SPECS[settings["backbone"]].from_settings(settings, obs_dim, act_dim)
