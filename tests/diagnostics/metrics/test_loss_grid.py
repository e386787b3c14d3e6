"""The matrices behind the heatmaps: orientation, averaging, gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from diagnostics.metrics.loss_grid import diagonal, log_ratio, loss_grids

WINDOW = 100


def losses(label="sac", seeds=(0,), value=lambda step, window, seed: 1.0, steps=(100, 200, 300)):
    rows = [
        {
            "label": label,
            "run": f"{label}/seed{seed}",
            "critic": "online",
            "env_step": step,
            "window_start": window * WINDOW,
            "window_end": (window + 1) * WINDOW,
            "mean": value(step, window, seed),
            "scaled": value(step, window, seed) / 2,
        }
        for seed in seeds
        for step in steps
        for window in range(step // WINDOW)
    ]
    return pd.DataFrame(rows)


def test_rows_are_windows_oldest_first_and_columns_are_measurements():
    grid = loss_grids(losses(value=lambda step, window, seed: step + window))["sac"]
    assert grid.steps.tolist() == [100, 200, 300]
    assert grid.starts.tolist() == [0, 100, 200]
    assert grid.values[0].tolist() == pytest.approx([100, 200, 300])
    assert grid.values[2, 2] == pytest.approx(302)
    assert np.isnan(grid.values[1, 0])
    assert grid.column_edges.tolist() == [0, 100, 200, 300]
    assert grid.row_edges.tolist() == [0, 100, 200, 300]


def test_seeds_are_combined_by_the_geometric_mean():
    grid = loss_grids(losses(seeds=(0, 1), value=lambda step, window, seed: 100.0**seed))["sac"]
    assert grid.seeds == 2
    assert grid.values[0] == pytest.approx([10, 10, 10])


def test_a_lost_cell_is_possible_but_nan():
    table = losses()
    table = table[~((table["env_step"] == 300) & (table["window_start"] == 0))]
    grid = loss_grids(table)["sac"]
    assert grid.possible[0, 2]
    assert np.isnan(grid.values[0, 2])
    assert not grid.possible[2, 0]
    assert len(grid.table("mean")) == 6


def test_ratio_uses_the_cells_both_have():
    first = loss_grids(losses("per-sac", value=lambda *_: 100.0))["per-sac"]
    second = loss_grids(losses("balanced-sac", value=lambda *_: 10.0, steps=(200, 300)))
    ratio = log_ratio(first, second["balanced-sac"])
    assert ratio.steps.tolist() == [200, 300]
    assert ratio.values[0] == pytest.approx([1, 1])
    with pytest.raises(ValueError, match="same steps"):
        log_ratio(first, loss_grids(losses("fog", steps=(150,)))["fog"])


def test_diagonal_is_the_newest_window():
    grid = loss_grids(
        losses(value=lambda step, window, seed: 10.0 if window == step // 100 - 1 else 2.0)
    )
    ends = diagonal(grid["sac"])
    assert ends["newest"].tolist() == pytest.approx([10, 10, 10])
    assert ends["oldest"].tolist() == pytest.approx([10, 2, 2])
