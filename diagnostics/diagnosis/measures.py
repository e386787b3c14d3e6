"""What each sign measures: one number per run and measurement.

Every function takes runs and returns the columns `run`, `env_step`, `value`; runs that did not
record what it needs are left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from diagnostics.metrics import primacy
from diagnostics.metrics.dormancy import dormant_ratios
from diagnostics.runs.load import Runs

TAU = 0.1
"""A neuron is dormant if its score is at most this share of its layer's mean."""

COLUMNS = ["run", "env_step", "value"]

Measure = Callable[[Runs], pd.DataFrame]


def primacy_index(quantity: str) -> Measure:
    """The primacy index of the online critic, from a column of the loss table."""

    def measure(runs: Runs) -> pd.DataFrame:
        needed = ("critic", "window", "window_start", "window_end", "count", quantity)
        table = _online(runs.table("critic_loss", columns=needed))
        parts = []
        for run, rows in table.groupby("run", sort=False):
            width = int((rows["window_end"] - rows["window_start"]).max())
            steps, values = primacy.column_indices(
                rows["env_step"], rows["window"], rows[quantity], rows["count"], width
            )
            parts.append(pd.DataFrame({"run": run, "env_step": steps, "value": values}))
        return _joined(parts)

    return measure


def warmstart_gap(fit: str) -> Measure:
    """The gap to a fresh critic, mean of the twins."""

    def measure(runs: Runs) -> pd.DataFrame:
        table = runs.table("warmstart", columns=("fit", "gap"))
        return _mean(table[table["fit"] == fit], "gap")

    return measure


def plasticity(runs: Runs) -> pd.DataFrame:
    """The score of the fit to random targets."""
    return _mean(_online(runs.table("plasticity", columns=("critic", "score"))), "score")


def dormant_share(score: str) -> Measure:
    """The share of the online critic's neurons that are dormant by a score."""

    def measure(runs: Runs) -> pd.DataFrame:
        table = runs.table("dormancy", columns=("phase", "network", score))
        table = table[(table["network"] == "online") & (table["phase"] == "cadence")]
        return _mean(dormant_ratios(table, score=score, tau=TAU), "ratio")

    return measure


def rank_share(kind: str) -> Measure:
    """A rank of the features over the width, so that sizes of networks matter less."""

    def measure(runs: Runs) -> pd.DataFrame:
        table = _online(runs.table("srank", columns=("critic", "width", kind)))
        return _mean(table.assign(value=table[kind] / table["width"]), "value")

    return measure


def weight_norm(runs: Runs) -> pd.DataFrame:
    """Ln of the root mean square of the online critic's parameters."""
    table = runs.table("norms", columns=("network", "parameters", "parameter_norm"))
    table = table[table["network"] == "online"]
    size = np.sqrt(table["parameters"].astype(float))
    return _mean(table.assign(value=np.log(table["parameter_norm"].astype(float) / size)), "value")


def offpolicy(runs: Runs) -> pd.DataFrame:
    """Distance of stored actions to the policy: oldest window minus newest."""
    ends = _ends(runs.table("offpolicy", columns=("window", "distance")), "distance")
    return ends.assign(value=ends["oldest"] - ends["newest"])[COLUMNS]


def interference(runs: Runs) -> pd.DataFrame:
    """Cosine of the gradients on the oldest and the newest window."""
    table = runs.table("interference", columns=("window", "other", "cosine"))
    moments = table.groupby(["run", "env_step"])["window"]
    oldest, newest = moments.transform("min"), moments.transform("max")
    pairs = (table["window"] == oldest) & (table["other"] == newest) & (oldest < newest)
    return _mean(table[pairs], "cosine")


def draws_imbalance(runs: Runs) -> pd.DataFrame:
    """ln(draws of a transition of the oldest tenth / of the newest tenth)."""
    table = runs.table("sample_counts", columns=("start", "end", "count"))
    moments = table.groupby(["run", "env_step"])["end"].transform("max")
    place = (table["start"] + table["end"]) / 2 / moments
    sizes = table.assign(size=table["end"] - table["start"])
    means = {}
    for name, chosen in (("oldest", place < 0.1), ("newest", place > 0.9)):
        sums = sizes[chosen].groupby(["run", "env_step"], sort=False)[["count", "size"]].sum()
        means[name] = (sums["count"] / sums["size"]).astype(float)
    both = pd.DataFrame(means).reset_index()
    both = both[(both["oldest"] > 0) & (both["newest"] > 0)] if len(both) else both
    return both.assign(value=np.log(both["oldest"] / both["newest"]))[COLUMNS]


def validation_gap(runs: Runs) -> pd.DataFrame:
    """ln(loss on evaluation episodes / on the newest stored window), both scale-free."""
    unseen = _mean(_online(runs.table("validation", columns=("critic", "scaled"))), "scaled")
    stored = _online(runs.table("critic_loss", columns=("critic", "window", "scaled")))
    newest = _ends(stored, "scaled")[["run", "env_step", "newest"]]
    both = unseen.merge(newest, on=["run", "env_step"])
    both = both[(both["value"] > 0) & (both["newest"] > 0)]
    return both.assign(value=np.log(both["value"] / both["newest"]))[COLUMNS]


def _online(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["critic"] == "online"]


def _mean(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """One number per run and measurement: the mean over members and rows."""
    values = table[column].astype(float)
    means = values.groupby([table["run"], table["env_step"]], sort=False).mean()
    return means.rename("value").reset_index()


def _ends(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """A column of the oldest and of the newest stored window, at every measurement of two."""
    moments = table.groupby(["run", "env_step"])["window"]
    oldest, newest = moments.transform("min"), moments.transform("max")
    table = table.assign(at_oldest=table["window"] == oldest, at_newest=table["window"] == newest)
    table = table[oldest < newest]
    sides = {
        side: table[table[f"at_{side}"]].groupby(["run", "env_step"], sort=False)[column].mean()
        for side in ("oldest", "newest")
    }
    return pd.DataFrame(sides).astype(float).reset_index()


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)
