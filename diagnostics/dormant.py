"""Dormant neurons: from recorded scores of every neuron to shares of each network.

Two definitions, because the paper's text defines dormancy by gradients and cites work that
defines it by activations: *dormant (gradient)* and *dormant (activation)*, never just "dormant". A
neuron of a layer is dormant if its score is at most tau times the mean score of its layer (Sokar et
al., 2023, by activations). With LayerNorm and ELU exact zeros do not occur, so the paper's
"non-zero gradient" needs a tau.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

SCORES = ("gradient", "activation")
TAUS = (0.0, 0.025, 0.1)
"""Thresholds of the tables; 0 counts exact zeros."""


def dormant_ratios(dormancy: pd.DataFrame, *, score: str, tau: float = 0.1) -> pd.DataFrame:
    """Share of dormant neurons by run, network and measurement, all hidden layers together.

    Measurements without the score are left out: runs of schema version 1 have no gradient scores.

    Args:
        dormancy: `Runs.dormancy`.
        score: `gradient` (the paper's text) or `activation` (Sokar et al.).
        tau: Threshold, as a share of the layer's mean score; 0 means exactly zero.

    Returns:
        Columns `task`, `variant`, `seed`, `label`, `run`, `env_step`, `phase`, `network`,
        `score`, `neurons`, `dormant`, `ratio`.
    """
    keys = ["task", "variant", "seed", "label", "run", "env_step", "phase", "network", "score"]
    if not dormancy.empty:
        dormancy = dormancy[dormancy[score].notna()].assign(score=score)
    if dormancy.empty:
        return pd.DataFrame(columns=[*keys, "neurons", "dormant", "ratio"])
    counts = np.array(
        [(len(values), np.sum(values <= tau * np.mean(values))) for values in dormancy[score]]
    )
    table = dormancy[keys].assign(neurons=counts[:, 0], dormant=counts[:, 1])
    sums = table.groupby(keys, sort=False, dropna=False)[["neurons", "dormant"]].sum()
    return sums.assign(ratio=sums["dormant"] / sums["neurons"]).reset_index()


def lasting_layers(dormancy: pd.DataFrame, kind: str = "expansion") -> pd.DataFrame:
    """Measurements around events of one kind, of the layers that exist before and after.

    An expansion adds neurons that are active at birth, which lowers the ratio of a network although
    no old neuron was revived. What is left here shows what happened to the old ones.

    Args:
        dormancy: `Runs.dormancy`.
        kind: `expansion` or `reset`.
    """
    around = dormancy[dormancy["phase"].isin([f"before {kind}", f"after {kind}"])]
    names = ["run", "env_step", "network", "layer", "member"]
    return around[around.groupby(names)["phase"].transform("nunique") == 2]


def event_changes(ratios: pd.DataFrame, kind: str = "expansion") -> pd.DataFrame:
    """The ratio just before and just after every event of one kind, one row per event."""
    names = ["task", "label", "run", "env_step", "network"]
    sides = {
        side: ratios[ratios["phase"] == f"{side} {kind}"].groupby(names)["ratio"].mean()
        for side in ("before", "after")
    }
    return pd.DataFrame(sides).dropna().reset_index()
