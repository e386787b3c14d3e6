"""Sizes of the networks of a run, from its config and manifest alone.

The paper counts "up to 23M parameters" without saying of what, so counts here name what they
cover: one critic, what is trained, and everything including target networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Sizes:
    """Numbers of parameters at one depth."""

    critic: int
    """One Q network."""
    value: int
    """The state value of OBAC's offline half; 0 for SAC."""
    actor: int
    critics: int
    """Q networks that are trained: 2 for SAC, 4 for OBAC (online and offline twins)."""

    @property
    def trained(self) -> int:
        """Parameters that gradients change."""
        return self.critics * self.critic + self.value + self.actor

    @property
    def total(self) -> int:
        """With the target network of every Q network."""
        return self.trained + self.critics * self.critic


def network_sizes(
    *,
    obs_dim: int,
    act_dim: int,
    width: int,
    depth: int,
    backbone: str = "obac",
    actor_layer_norm: bool = False,
) -> Sizes:
    """Count parameters: critics are stem, `depth` residual blocks and a head; actors two layers.

    A dense layer of a critic has a weight, a bias and the two vectors of its LayerNorm; the head
    has no LayerNorm, and an actor has it only in the motivating example.
    """

    def residual(inputs: int) -> int:
        stem = inputs * width + 3 * width
        blocks = 2 * depth * (width * width + 3 * width)
        return stem + blocks + width + 1

    extra = 3 * width if actor_layer_norm else width
    actor = (obs_dim * width + extra) + (width * width + extra) + (width + 1) * 2 * act_dim
    offline = backbone == "obac"
    return Sizes(
        critic=residual(obs_dim + act_dim),
        value=residual(obs_dim) if offline else 0,
        actor=actor,
        critics=4 if offline else 2,
    )


def sizes_of_run(config: Mapping[str, Any], manifest: Mapping[str, Any], depth: int) -> Sizes:
    """`network_sizes` for a run directory's settings.

    Raises:
        KeyError: the run has not come far enough to know its observation and action sizes.
    """
    return network_sizes(
        obs_dim=int(manifest["obs_dim"]),
        act_dim=int(manifest["act_dim"]),
        width=int(config["width"]),
        depth=depth,
        backbone=str(config["backbone"]),
        actor_layer_norm=bool(config["actor_layer_norm"]),
    )


def growth(
    config: Mapping[str, Any], manifest: Mapping[str, Any], events: pd.DataFrame
) -> pd.DataFrame:
    """The history of one run's critics: one row for the start and for each reset and expansion.

    Returns:
        Columns `env_step`, `event`, `updates`, `since_reset` (updates since the last reset),
        `cycle` (number of resets so far), `depth`, `dense_layers`, `critic_lr`, `critic_parameters`
        (one Q network), `trained_parameters` and `total_parameters` (with targets).
    """
    first = int(config["initial_depth"])
    rows = [
        {
            "env_step": 0,
            "event": "start",
            "updates": 0,
            "depth": first,
            "dense_layers": 1 + 2 * first,
            "critic_lr": float(config["critic_lr"]),
        }
    ]
    changes = events[events["event"].isin(["reset", "expansion"])]
    rows += changes[list(rows[0])].to_dict("records")
    table = pd.DataFrame(rows).astype({"depth": int, "dense_layers": int, "updates": int})
    table["cycle"] = (table["event"] == "reset").cumsum()
    table["since_reset"] = table["updates"] - table.groupby("cycle")["updates"].transform("first")
    sizes = [sizes_of_run(config, manifest, depth) for depth in table["depth"]]
    table["critic_parameters"] = [size.critic for size in sizes]
    table["trained_parameters"] = [size.trained for size in sizes]
    table["total_parameters"] = [size.total for size in sizes]
    return table


def fullest_cycle(history: pd.DataFrame) -> pd.DataFrame:
    """The stretch between two resets in which the critics grew most; the earliest if several."""
    expansions = history.groupby("cycle")["event"].agg(lambda names: (names == "expansion").sum())
    return history[history["cycle"] == expansions.idxmax()].reset_index(drop=True)
