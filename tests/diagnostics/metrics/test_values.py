"""The size of values, from tables whose answer is known."""

from __future__ import annotations

import pandas as pd
import pytest

from diagnostics.metrics.values import late_values, possible_values


def test_late_values_are_the_median_size_in_the_last_fifth() -> None:
    train = pd.DataFrame(
        {
            "run": ["a"] * 10 + ["b"] * 5,
            "env_step": [*range(10, 101, 10), *range(20, 101, 20)],
            "q": [1e9] * 8 + [-3.0, 5.0] + [2.0, 2.0, 2.0, 2.0, -7.0],
        }
    )
    assert late_values(train).to_dict() == {"a": 4.0, "b": 7.0}


def test_runs_that_do_not_log_values_are_left_out() -> None:
    assert late_values(pd.DataFrame({"run": ["a"], "env_step": [10]})).empty


def test_returns_bound_the_values() -> None:
    evals = pd.DataFrame(
        {
            "run": ["a", "a", "b", "b", "c"],
            "return": [4.0, -50.0, 300.0, 900.0, 20.0],
            "length": [10, 10, 1000, 1000, 10],
        }
    )
    discount = pd.Series({"a": 0.99, "b": 0.99, "c": 0.9})
    # Five a step, the largest in size; less than one a step counts as one; two a step.
    assert possible_values(evals, discount).to_dict() == pytest.approx(
        {"a": 500.0, "b": 100.0, "c": 20.0}
    )
