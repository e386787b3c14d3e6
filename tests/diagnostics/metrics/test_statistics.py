"""Statistics against rliable, against hand sums, and against the truth where it is known.

`tests/fixtures/rliable.csv` was made in an environment of its own with rliable 1.2.0, arch 7.2.0,
pandas 2.3.3 and numpy 2.4.6 (rliable does not import beside pandas 3), on the arrays of `scores`
below: `value` is the result of `library.get_interval_estimates` with `metrics.aggregate_mean`,
`_median`, `_iqm`, `_optimality_gap` and `metrics.probability_of_improvement` against `others`, and
of `library.create_performance_profile` at the thresholds in the column `argument`. Its bootstrap
intervals, low and high, are not ours; see `diagnostics.metrics.student`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from diagnostics.metrics import statistics

RLIABLE = pd.read_csv(Path(__file__).parents[2] / "fixtures" / "rliable.csv")
CASES = {"3x4": (3, 4, 5), "5x7": (5, 7, 17), "10x1": (10, 1, 29)}


def made_up(runs: int, tasks: int, shift: int) -> np.ndarray:
    i, j = np.ogrid[:runs, :tasks]
    return ((37 * i * i + 11 * i + 53 * j + 19 * i * j + shift) % 101) / 80


def scores(case: str) -> np.ndarray:
    return made_up(*CASES[case])


def others(case: str) -> np.ndarray:
    runs, tasks, shift = CASES[case]
    return made_up(runs + 1, tasks, shift + 31)


def arguments(row: Any) -> tuple[Any, Any]:
    if row.statistic == "probability_of_improvement":
        return statistics.probability_of_improvement, (scores(row.case), others(row.case))
    if row.statistic == "performance_profile":
        return (
            lambda values: statistics.performance_profile(values, [row.argument])[..., 0],
            (scores(row.case),),
        )
    return getattr(statistics, row.statistic), (scores(row.case),)


@pytest.mark.parametrize("row", list(RLIABLE.itertuples()), ids=lambda r: f"{r.case}-{r.statistic}")
def test_agrees_with_rliable(row: Any) -> None:
    aggregate, values = arguments(row)
    assert float(aggregate(*values)) == pytest.approx(row.value, abs=1e-12)


def test_iqm_by_hand() -> None:
    # 12 scores: 3 cut at either end, the mean of 4..9 is left, whatever the outliers are.
    values = np.array([-1e9, 1, 2, 4, 5, 6, 7, 8, 9, 11, 12, 1e9]).reshape(4, 3)
    assert statistics.iqm(values) == pytest.approx(6.5)


def test_optimality_gap_ignores_what_exceeds_gamma() -> None:
    assert statistics.optimality_gap([[0.5, 3.0]]) == pytest.approx(0.25)
    assert statistics.optimality_gap([[0.5, 3.0]], gamma=3.0) == pytest.approx(1.25)


def test_probability_of_improvement_counts_ties_half() -> None:
    assert statistics.probability_of_improvement([[1.0], [2.0]], [[1.0], [0.0]]) == 0.875
    assert statistics.probability_of_improvement([[1.0]], [[1.0]]) == 0.5


def test_no_runs_at_all() -> None:
    assert np.isnan(statistics.iqm(np.empty((0, 0))))


def test_tasks_may_have_different_numbers_of_seeds() -> None:
    values = [[1.0, 5.0, np.nan], [3.0, np.nan, np.nan]]
    assert statistics.mean(values) == pytest.approx(3.5)
    assert statistics.median(values) == pytest.approx(3.5)


def test_a_vector_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(runs, tasks\)"):
        statistics.mean([1.0, 2.0])


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 5)),
        elements=st.floats(-10, 10, width=16),
    )
)
def test_aggregates_lie_within_the_scores(values: np.ndarray) -> None:
    slack = 1e-9
    for aggregate in (statistics.mean, statistics.median, statistics.iqm):
        assert values.min() - slack <= aggregate(values) <= values.max() + slack
    assert statistics.probability_of_improvement(values, values) == pytest.approx(0.5)
    more = np.concatenate([values, np.full((2, values.shape[1]), np.nan)])
    for aggregate in (statistics.mean, statistics.median, statistics.iqm):
        assert aggregate(more) == pytest.approx(float(aggregate(values)))
