"""Series averaged over seeds: mean and interval at every step, for curves with bands."""

from __future__ import annotations

import numpy as np
import pandas as pd

from diagnostics.metrics import student
from diagnostics.paper.names import ordered


def mean_curves(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """Mean over seeds and its 95 % interval (`diagnostics.metrics.student`), by task and label.

    At a step that some seeds have not reached, the others are averaged, and `seeds` counts them.
    With one seed the interval is NaN.

    Args:
        table: One row per run and step, with columns `task`, `label`, `run`, `env_step`.
        value: The column to average.

    Returns:
        Columns `task`, `label`, `env_step`, `mean`, `low`, `high`, `seeds`; labels in the paper's
        order.
    """
    parts = []
    usable = table[np.isfinite(table[value].to_numpy(float))]
    for task in sorted(usable["task"].unique()):
        of_task = usable[usable["task"] == task]
        for label in ordered(of_task["label"]):
            rows = of_task[of_task["label"] == label]
            matrix = rows.pivot_table(index="run", columns="env_step", values=value)
            mean, seeds = matrix.mean().to_numpy(float), matrix.count().to_numpy(int)
            half = student.half_width(matrix.std(ddof=1).to_numpy(float), seeds)
            parts.append(
                pd.DataFrame(
                    {
                        "task": task,
                        "label": label,
                        "env_step": matrix.columns.to_numpy(np.int64),
                        "mean": mean,
                        "low": mean - half,
                        "high": mean + half,
                        "seeds": seeds,
                    }
                )
            )
    columns = ["task", "label", "env_step", "mean", "low", "high", "seeds"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
