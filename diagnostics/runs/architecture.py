"""The networks of a recorded run: what they were made of, and how they grew.

The paper counts "up to 23M parameters" without saying of what, so counts here name what they
cover: one critic, what is trained, and everything including target networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from fog.records.sizes import NetworkSpec, count
from fog.records.specs import spec_of


def networks_of(config: Mapping[str, Any], manifest: Mapping[str, Any]) -> NetworkSpec:
    """Sizes of a run's networks.

    Raises:
        KeyError: the run has not come far enough to know its observation and action sizes.
    """
    return spec_of(config, int(manifest["obs_dim"]), int(manifest["act_dim"]))


def growth(
    config: Mapping[str, Any], manifest: Mapping[str, Any], events: pd.DataFrame
) -> pd.DataFrame:
    """The history of one run's critics: one row for the start and for each reset and expansion.

    Returns:
        Columns `env_step`, `event`, `updates`, `since_reset` (updates since the last reset),
        `cycle` (number of resets so far), `depth`, `dense_layers`, `critic_lr`, `critic_parameters`
        (one Q network), `trained_parameters` and `total_parameters` (with targets).
    """
    spec = networks_of(config, manifest)
    rows = [
        {
            "env_step": 0,
            "event": "start",
            "updates": 0,
            "depth": spec.initial_depth,
            "critic_lr": float(config["critic_lr"]),
        }
    ]
    changes = events[events["event"].isin(["reset", "expansion"])]
    rows += changes[list(rows[0])].to_dict("records")
    table = pd.DataFrame(rows).astype({"depth": int, "updates": int})
    # Not the events' own column: the first edition did not count the head.
    table["dense_layers"] = [spec.dense_layers(depth) for depth in table["depth"]]
    table["cycle"] = (table["event"] == "reset").cumsum()
    table["since_reset"] = table["updates"] - table.groupby("cycle")["updates"].transform("first")
    sizes = [spec.parameters(depth) for depth in table["depth"]]
    table["critic_parameters"] = [count(spec.critic(depth, 1)) for depth in table["depth"]]
    table["trained_parameters"] = [size["trainable"] for size in sizes]
    table["total_parameters"] = [size["total"] for size in sizes]
    return table


def fullest_cycle(history: pd.DataFrame) -> pd.DataFrame:
    """The stretch between two resets in which the critics grew most; the earliest if several."""
    expansions = history.groupby("cycle")["event"].agg(lambda names: (names == "expansion").sum())
    return history[history["cycle"] == expansions.idxmax()].reset_index(drop=True)
