from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import diagnostics
from diagnostics.errors import AnalysisError
from diagnostics.metrics import scores
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


@pytest.mark.parametrize(
    ("every", "spacing", "before", "wanted"),
    [
        # The interval of evaluations divides the grid: the points themselves, T itself left out.
        (5, 25, 100, [25, 50, 75]),
        (25, 25, 100, [25, 50, 75]),
        # It does not: the last evaluation before each point.
        (7, 25, 100, [21, 49, 70]),
        (40, 25, 100, [40]),
        # Every evaluation is a point; or none, because the run is shorter than the grid.
        (5, 1, 25, [5, 10, 15, 20]),
        (5, 25, 25, []),
        (5, 30, 25, []),
        (5, 25, np.inf, [25, 50, 75, 100]),
    ],
)
def test_evaluations_on_a_grid_by_hand(
    every: int, spacing: int, before: float, wanted: list[int]
) -> None:
    steps = np.arange(every, 101, every)
    steps = steps[steps <= before]
    assert steps[scores.on_grid(steps, spacing, before)].tolist() == wanted
    # The order of the evaluations does not matter.
    back = steps[::-1]
    assert sorted(back[scores.on_grid(back, spacing, before)].tolist()) == wanted
    # The best is the largest of these, however large the others are.
    values = np.where(np.isin(steps, wanted), steps, 1000.0)
    best = scores.best_score(steps, values, before, spacing)
    assert best == max(wanted) if wanted else np.isnan(best)


def test_a_grid_that_a_running_run_has_not_reached() -> None:
    steps = np.array([10, 20, 30])
    assert steps[scores.on_grid(steps, 25)].tolist() == [20]
    assert scores.on_grid(np.array([]), 25).tolist() == []
    assert np.isnan(scores.best_score(np.array([]), np.array([]), 100, 25))


def test_the_paper_s_grid_keeps_a_frequently_evaluated_run_from_an_advantage() -> None:
    """Pure noise: a maximum over five times as many draws is higher by more than half of it."""
    steps = np.arange(5_000, 1_000_001, 5_000)
    noise = np.random.default_rng(0).standard_normal((400, len(steps)))
    best = [
        np.mean([scores.best_score(steps, row, 1_000_000, spacing) for row in noise])
        for spacing in (25_000, None)
    ]
    assert 0.5 < best[1] - best[0] < 0.8


@pytest.mark.parametrize(("name", "steps"), [("25k", 25_000), ("5000", 5_000), ("all", None)])
def test_grids_have_names(name: str, steps: int | None) -> None:
    grid = scores.Grid.named(name)
    assert grid.steps == steps
    assert scores.Grid.named(grid.name) == grid
    assert grid.rule("final_score") == "final"


def test_a_grid_shrinks_with_the_run() -> None:
    assert scores.PAPER_GRID.spacing(0.02) == 500
    assert scores.PAPER_GRID.spacing(1e-9) == 1
    assert scores.Grid.named("all").spacing(0.02) is None
    assert scores.PAPER_GRID.rule("best_score") == "best before T, 25k grid"
    assert scores.Grid(None).rule("best_score") == "best before T, all evaluations"
    with pytest.raises(AnalysisError, match="unknown grid '25 k': give steps such as 25k"):
        scores.Grid.named("25 k")


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
