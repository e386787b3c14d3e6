"""Which networks an agent has, how large they are, and how many parameters that makes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from fog.config import Config
from fog.networks import Shapes, actor_shapes, critic_shapes, dense_layers


@dataclass(frozen=True)
class NetworkSpec:
    """Sizes of all networks of an agent, except the critics' current depth."""

    obs_dim: int
    act_dim: int
    width: int
    ensemble: int
    """Critic members: 2 for SAC; 4 for OBAC, online twins first, then offline twins."""
    initial_depth: int
    maximal_depth: int
    actor_layer_norm: bool
    plain: bool

    @classmethod
    def from_config(cls, config: Config, obs_dim: int, act_dim: int) -> NetworkSpec:
        """The networks of a run on a task with these dimensions."""
        return cls(
            obs_dim=obs_dim,
            act_dim=act_dim,
            width=config.network.width,
            ensemble=4 if config.agent.backbone == "obac" else 2,
            initial_depth=config.network.initial_depth,
            maximal_depth=config.network.maximal_depth,
            actor_layer_norm=config.network.actor_layer_norm,
            plain=config.network.critic == "plain",
        )

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
        return critic_shapes(size, self.obs_dim + self.act_dim, self.width, depth, self.plain)

    def value(self, depth: int) -> Shapes:
        """The tree of V; empty for SAC."""
        if not self.offline:
            return {}
        return critic_shapes(1, self.obs_dim, self.width, depth, self.plain)

    def learning_rate(self, initial: float, depth: int) -> float:
        """Critic learning rate: initial x initial dense layers / current dense layers."""
        return initial * dense_layers(self.initial_depth) / dense_layers(depth)


def parameter_counts(spec: NetworkSpec, depth: int) -> dict[str, int]:
    """Parameters by network at `depth`, with totals.

    `trainable` counts what an optimiser moves (actor, online and offline critics, V, temperature);
    `total` adds the target networks. V has no target. LayerNorm and biases are counted.
    """
    twins = _count(spec.critic(depth, ensemble=2))
    counts = {"actor": _count(spec.actor()), "critic": twins, "critic_target": twins}
    if spec.offline:
        counts |= {
            "offline_critic": twins,
            "offline_critic_target": twins,
            "value": _count(spec.value(depth)),
        }
    counts["temperature"] = 1
    total = sum(counts.values())
    targets = sum(size for name, size in counts.items() if name.endswith("_target"))
    return counts | {"trainable": total - targets, "total": total}


def _count(shapes: Shapes) -> int:
    return sum(prod(shape) for shape in shapes.values())
