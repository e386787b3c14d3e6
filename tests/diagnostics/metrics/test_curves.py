"""Means over seeds and their intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from diagnostics.metrics.curves import mean_curves


def table(values):
    return pd.DataFrame(
        [
            {"task": "t", "label": "sac", "run": str(seed), "env_step": step, "return": value}
            for seed, row in enumerate(values)
            for step, value in enumerate(row)
        ]
    )


def test_mean_and_interval_contain_each_other():
    rng = np.random.default_rng(0)
    found = mean_curves(table(rng.normal(5, 1, (8, 20))), "return")
    assert (found["low"] < found["mean"]).all()
    assert (found["mean"] < found["high"]).all()
    assert (found["seeds"] == 8).all()


def test_the_interval_is_students():
    rng = np.random.default_rng(1)
    values = rng.normal(0, 1, (50, 200))
    found = mean_curves(table(values), "return")
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    np.testing.assert_allclose(found["low"], expected.low)
    np.testing.assert_allclose(found["high"], expected.high)


def test_three_seeds_leave_their_range():
    found = mean_curves(table([[1.0], [2.0], [4.0]]), "return").iloc[0]
    assert found["low"] < 1 and found["high"] > 4


def test_one_seed_has_no_interval():
    found = mean_curves(table([[1.0, 2.0]]), "return")
    assert found["mean"].tolist() == [1, 2]
    assert found[["low", "high"]].isna().all(axis=None)


def test_a_seed_that_stopped_early_is_left_out_of_later_steps():
    found = mean_curves(table([[1.0, 2.0, 3.0], [3.0]]), "return")
    assert found["mean"].tolist() == [2, 2, 3]
    assert found["seeds"].tolist() == [2, 1, 1]
    assert found["low"].isna().tolist() == [False, True, True]


def test_nothing_to_average():
    empty = mean_curves(
        pd.DataFrame(columns=["task", "label", "run", "env_step", "return"]), "return"
    )
    assert empty.empty
    assert "low" in empty
