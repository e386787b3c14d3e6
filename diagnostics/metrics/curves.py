"""Series averaged over seeds: mean and bootstrap interval at every step, for curves with bands."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from diagnostics.metrics.statistics import CONFIDENCE, RESAMPLES
from diagnostics.paper.names import ordered


def mean_curves(table: pd.DataFrame, value: str, *, seed: int = 0) -> pd.DataFrame:
    """Mean over seeds and a 95 % percentile bootstrap interval, for every task and label.

    Whole seeds are resampled: one resampling covers all steps of a curve, so a band is as smooth as
    the curves in it. At a step that some seeds have not reached, the others are averaged, and
    `seeds` counts them. With one seed the interval is NaN, because nothing is known about its
    width.

    Args:
        table: One row per run and step, with columns `task`, `label`, `run`, `env_step`.
        value: The column to average.
        seed: Of the resampling.

    Returns:
        Columns `task`, `label`, `env_step`, `mean`, `low`, `high`, `seeds`; labels in the paper's
        order.
    """
    rng = np.random.default_rng(seed)
    parts = []
    usable = table[np.isfinite(table[value].to_numpy(float))]
    for task in sorted(usable["task"].unique()):
        of_task = usable[usable["task"] == task]
        for label in ordered(of_task["label"]):
            rows = of_task[of_task["label"] == label]
            matrix = rows.pivot_table(index="run", columns="env_step", values=value)
            mean, low, high = _bands(matrix.to_numpy(float), rng)
            parts.append(
                pd.DataFrame(
                    {
                        "task": task,
                        "label": label,
                        "env_step": matrix.columns.to_numpy(np.int64),
                        "mean": mean,
                        "low": low,
                        "high": high,
                        "seeds": matrix.notna().sum().to_numpy(int),
                    }
                )
            )
    columns = ["task", "label", "env_step", "mean", "low", "high", "seeds"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _bands(
    matrix: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean, low and high of every column of a (seeds, steps) matrix with gaps."""
    known = np.isfinite(matrix)
    counts = known.sum(axis=0)
    mean = np.where(known, matrix, 0.0).sum(axis=0) / np.maximum(counts, 1)
    nothing = np.full(matrix.shape[1], np.nan)
    if len(matrix) < 2:
        return mean, nothing, nothing
    draws = rng.multinomial(len(matrix), np.full(len(matrix), 1 / len(matrix)), size=RESAMPLES)
    weight = draws @ known
    sums = draws @ np.where(known, matrix, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(weight > 0, sums / weight, np.nan)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(means, [tail, 1 - tail], axis=0)
    alone = counts < 2
    return mean, np.where(alone, np.nan, low), np.where(alone, np.nan, high)
