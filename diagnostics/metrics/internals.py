"""What probes saw inside the networks, as a few curves for each run."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

RANKS = ("srank", "effective_rank", "pca_rank", "feature_rank")


def network_norms(layer_norms: pd.DataFrame) -> pd.DataFrame:
    """Norms and their ratios by network, all parameters together: squares add up.

    Args:
        layer_norms: `Runs.table("layer_norms")`.

    Returns:
        Columns `run`, `env_step`, `network`, `norm`, `gradient_norm`, `update_norm`,
        `birth_distance`, `effective_lr` (update_norm / norm), `gradient_ratio`.
    """
    names = ["norm", "gradient_norm", "update_norm", "birth_distance"]
    keys = ["run", "env_step", "network"]
    squares = layer_norms[keys].join(layer_norms[names] ** 2)
    # Without `min_count` a sum of unknown updates would be 0.
    sums = squares.groupby(keys, sort=False)[names].sum(min_count=1)
    table = np.sqrt(sums).reset_index()
    return table.assign(
        effective_lr=table["update_norm"] / table["norm"],
        gradient_ratio=table["gradient_norm"] / table["norm"],
    )


def curves_inside(
    srank: pd.DataFrame,
    dormancy: pd.DataFrame,
    layer_norms: pd.DataFrame,
    update_churn: pd.DataFrame,
    disagreement: pd.DataFrame,
) -> pd.DataFrame:
    """The curves of one run, long: `quantity`, `line`, `env_step`, `value`.

    Quantities: `rank` (lines: `RANKS`, of the online critic, mean of the twins), `positive` (share
    of positive outputs by network), `effective_lr` and `birth_distance` (by network),
    `update_churn` (the policy's KL and the scaled change of Q of one update), `disagreement` (of
    the online twins over the standard deviation of Q, in the newest and the oldest window).
    """
    parts: list[pd.DataFrame] = []
    online = srank[srank["critic"] == "online"]
    parts += (_mean(online, "rank", name, name) for name in RANKS)
    cadence = dormancy[dormancy["phase"] == "cadence"]
    parts += _by_network(cadence, "positive", "positive")
    norms = network_norms(layer_norms)
    for quantity in ("effective_lr", "birth_distance"):
        parts += _by_network(norms, quantity, quantity)
    for column, line in (("policy_kl", "KL of the policy"), ("q_churn_scaled", "Q / its std")):
        parts.append(_mean(update_churn, "update_churn", line, column))
    twins = disagreement[disagreement["critic"] == "online"]
    twins = twins.assign(scaled=twins["disagreement"] / twins["q_std"].where(twins["q_std"] > 0))
    for line, pick in (("newest window", "max"), ("oldest window", "min")):
        ends = twins.groupby("env_step")["window"].transform(pick)
        parts.append(_mean(twins[twins["window"] == ends], "disagreement", line, "scaled"))
    return pd.concat(parts, ignore_index=True)


def _by_network(table: pd.DataFrame, quantity: str, column: str) -> Iterable[pd.DataFrame]:
    for network, rows in table.groupby("network", sort=False):
        yield _mean(rows, quantity, str(network), column)


def _mean(table: pd.DataFrame, quantity: str, line: str, column: str) -> pd.DataFrame:
    means = table.groupby("env_step")[column].mean().astype(float)
    return pd.DataFrame(
        {"quantity": quantity, "line": line, "env_step": means.index, "value": means.to_numpy()}
    )
