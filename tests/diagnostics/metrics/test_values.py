"""The size of values, from tables whose answer is known."""

from __future__ import annotations

import math

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


@pytest.mark.parametrize("last", [math.inf, math.nan])
def test_late_values_that_are_not_finite_are_infinite(last: float) -> None:
    train = pd.DataFrame({"run": "a", "env_step": range(10, 101, 10), "q": [1.0] * 8 + [2.0, last]})
    assert late_values(train).to_dict() == {"a": math.inf}


def test_runs_that_do_not_log_values_are_left_out() -> None:
    steps = pd.DataFrame({"run": ["a", "b"], "env_step": [10, 10]})
    assert late_values(steps).empty
    assert late_values(steps.assign(q=[math.nan, 3.0])).to_dict() == {"b": 3.0}
    assert late_values(steps.assign(q=["?", "3"])).to_dict() == {"b": 3.0}


def test_returns_bound_the_values() -> None:
    evals = pd.DataFrame(
        {
            "run": ["a", "a", "b", "b", "c", "c", "c"],
            "return": [4.0, -50.0, 300.0, 900.0, 20.0, math.inf, math.nan],
            "length": [10, 10, 1000, 1000, 10, 10, 0],
        }
    )
    discount = pd.Series({"a": 0.99, "b": 0.99, "c": 0.9})
    # Five a step, the largest in size; less than one a step counts as one; two a step.
    assert possible_values(evals, discount).to_dict() == pytest.approx(
        {"a": 500.0, "b": 100.0, "c": 20.0}
    )


@pytest.mark.parametrize("discount", [1.0, math.nan, "abc"])
def test_without_a_discount_there_is_no_bound(discount: object) -> None:
    evals = pd.DataFrame({"run": ["a"], "return": [4.0], "length": [10]})
    assert possible_values(evals, pd.Series({"a": discount})).isna().all()


def test_without_evaluations_there_is_no_bound() -> None:
    evals = pd.DataFrame({"run": ["a"], "return": [4.0], "length": [0]})
    assert possible_values(evals, pd.Series({"a": 0.99})).empty
    assert possible_values(evals[["run"]], pd.Series({"a": 0.99})).empty
