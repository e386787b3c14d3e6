from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import diagnostics
from diagnostics import scores
from tests.diagnostics.recorded import FIXTURE


def test_curve_averages_the_episodes_of_each_evaluation() -> None:
    runs = diagnostics.load(FIXTURE)
    curve = scores.curve(runs.evals)
    assert (curve["episodes"] == 2).all()
    assert len(curve) * 2 == len(runs.evals)
    first = runs.evals.iloc[:2]
    assert curve.iloc[0]["return"] == pytest.approx(first["return"].mean())
    assert scores.curve(diagnostics.load(FIXTURE).evals.head(0)).empty


def test_the_two_rules() -> None:
    steps, values = np.array([100, 200, 300]), np.array([5.0, 9.0, 7.0])
    assert scores.final_score(steps, values) == 7.0
    assert scores.best_score(steps, values, 300) == 9.0
    # Strictly before: the evaluation at T itself does not count.
    assert scores.best_score(steps, values, 200) == 5.0
    assert np.isnan(scores.best_score(steps, values, 100))
    assert scores.best_score(steps, np.array([np.nan, 2.0, 1.0]), 400) == 2.0
    assert np.isnan(scores.final_score(np.array([]), np.array([])))


def test_by_best_run_uses_one_run_of_any_method() -> None:
    found = scores.by_best_run({"a": np.array([2.0, 8.0]), "b": np.array([4.0, np.nan])})
    np.testing.assert_allclose(found["a"], [0.25, 1.0])
    np.testing.assert_allclose(found["b"], [0.5, np.nan])


@pytest.mark.parametrize("values", [[-3.0, -1.0], [], [np.nan]])
def test_a_share_of_nothing_is_nan(values: list[float]) -> None:
    assert np.isnan(scores.by_best_run({"a": np.array(values)})["a"]).all()


def test_by_constant() -> None:
    np.testing.assert_allclose(scores.by_constant(np.array([500.0]), 1000.0), [0.5])
    assert np.isnan(scores.by_constant(np.array([500.0]), None)).all()


def test_normalise_compares_within_task_and_scale_only() -> None:
    runs = pd.DataFrame(
        {
            "task": ["t", "t", "t", "u"],
            "scale": [1.0, 1.0, 0.1, 1.0],
            "steps": [10, 10, 1, 10],
            "best_score": [50.0, 100.0, 10.0, -5.0],
            "normaliser": [1000.0, 1000.0, 1000.0, np.nan],
        }
    )
    table = scores.normalise(runs)
    np.testing.assert_allclose(table["by_best_run"], [0.5, 1.0, 1.0, np.nan])
    np.testing.assert_allclose(table["by_constant"], [0.05, 0.1, 0.01, np.nan])
    assert "by_best_run" not in runs
