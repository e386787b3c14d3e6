"""Critic loss by insertion window and time of measurement: the matrices behind the heatmaps.

The paper measures the loss of every stored transition each 100k steps and averages it by the
100k-step window in which the transition was inserted (Figure 3). A column is one measurement, a
row one insertion window; the diagonal is the newest data, the top right corner the oldest data
seen by the latest network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from diagnostics.paper.names import ordered

QUANTITIES = {
    "mean": "critic loss",
    "scaled": "critic loss / target variance",
}
"""Columns of the table `critic_loss` that make a heatmap, and what they are called."""


@dataclass(frozen=True)
class LossGrid:
    """One heatmap: rows are insertion windows, oldest first; columns are measurements."""

    label: str
    steps: NDArray[np.int64]
    """Environment step of each measurement."""
    starts: NDArray[np.int64]
    """First transition of each window."""
    ends: NDArray[np.int64]
    """One past the last transition of each window."""
    values: NDArray[np.float64]
    """(windows, measurements); NaN where nothing was stored or measured."""
    seeds: int

    @property
    def column_edges(self) -> NDArray[np.float64]:
        """Edges for drawing: a measurement covers the stretch of training since the last one."""
        widths = np.diff(self.steps, prepend=0)
        width = float(np.median(widths[1:])) if len(widths) > 1 else float(self.steps[0])
        first = max(0.0, float(self.steps[0]) - width)
        return np.concatenate([[first], self.steps.astype(float)])

    @property
    def row_edges(self) -> NDArray[np.float64]:
        """Edges of the insertion windows."""
        return np.append(self.starts, self.ends[-1]).astype(float)

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Where data could be: a window exists once its first transition has been inserted."""
        return np.asarray(self.starts[:, None] < self.steps[None, :])

    def table(self, quantity: str) -> pd.DataFrame:
        """One row per cell that could hold data."""
        rows, columns = np.nonzero(self.possible)
        return pd.DataFrame(
            {
                "label": self.label,
                "env_step": self.steps[columns],
                "window_start": self.starts[rows],
                "window_end": self.ends[rows],
                quantity: self.values[rows, columns],
                "seeds": self.seeds,
            }
        )


def loss_grids(
    critic_loss: pd.DataFrame, quantity: str = "mean", critic: str = "online"
) -> dict[str, LossGrid]:
    """One grid per label of the runs of one task, in the paper's order.

    Seeds are combined by the geometric mean: the losses of one cell spread over orders of
    magnitude, and colours show their logarithm.

    Args:
        critic_loss: `Runs.critic_loss` of one task.
        quantity: A key of `QUANTITIES`.
        critic: online, offline or value.
    """
    chosen = critic_loss[critic_loss["critic"] == critic]
    return {
        label: _grid(label, chosen[chosen["label"] == label], quantity)
        for label in ordered(chosen["label"])
    }


def _grid(label: str, rows: pd.DataFrame, quantity: str) -> LossGrid:
    positive = rows[rows[quantity] > 0].assign(log=lambda table: np.log(table[quantity]))
    windows = rows.groupby("window_start")["window_end"].max()
    steps = np.sort(rows["env_step"].unique())
    logs = positive.pivot_table(index="window_start", columns="env_step", values="log")
    values = np.exp(logs.reindex(index=windows.index, columns=steps).to_numpy(float))
    return LossGrid(
        label,
        steps.astype(np.int64),
        windows.index.to_numpy(np.int64),
        windows.to_numpy(np.int64),
        values,
        int(rows["run"].nunique()),
    )


def log_ratio(first: LossGrid, second: LossGrid) -> LossGrid:
    """log10(first / second) on the cells that both have.

    Raises:
        ValueError: the two have no cell in common.
    """
    steps, at_first, at_second = np.intersect1d(first.steps, second.steps, return_indices=True)
    starts, row_first, row_second = np.intersect1d(first.starts, second.starts, return_indices=True)
    if not len(steps) or not len(starts):
        raise ValueError(f"{first.label} and {second.label} were not measured at the same steps")
    ratio = first.values[np.ix_(row_first, at_first)] / second.values[np.ix_(row_second, at_second)]
    return LossGrid(
        f"{first.label} / {second.label}",
        steps,
        starts,
        first.ends[row_first],
        np.log10(ratio),
        min(first.seeds, second.seeds),
    )


def diagonal(grid: LossGrid) -> pd.DataFrame:
    """Loss on the newest and on the oldest window at each measurement."""
    stored = ~np.isnan(grid.values)
    columns = np.flatnonzero(stored.any(axis=0))
    oldest = stored[:, columns].argmax(axis=0)
    newest = len(grid.starts) - 1 - stored[::-1, columns].argmax(axis=0)
    return pd.DataFrame(
        {
            "label": grid.label,
            "env_step": grid.steps[columns],
            "newest": grid.values[newest, columns],
            "oldest": grid.values[oldest, columns],
            "seeds": grid.seeds,
        }
    )
