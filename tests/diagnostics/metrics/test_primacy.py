"""The primacy-bias index: definition, invariances, intervals."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from diagnostics.metrics.primacy import (
    column_index,
    column_indices,
    rank,
)


def rng():
    return np.random.default_rng(0)


def test_index_by_hand():
    assert column_index([2.0, 4.0, 1.0, 1.0, 6.0], [10] * 5) == pytest.approx(np.log(6 / 3))
    assert column_index([1.0, 3.0, 1.0, 8.0], [30, 10, 10, 10]) == pytest.approx(np.log(8 / 1.5))
    assert column_index([5.0, 5.0], [10, 10]) == 0.0
    assert column_index([5.0, 1.0], [10, 10]) < 0


def test_a_common_factor_cancels():
    loss = np.array([1.0, 2.0, 3.0, 9.0])
    assert column_index(1e6 * loss, [10] * 4) == pytest.approx(column_index(loss, [10] * 4))


def test_incomplete_windows_do_not_count():
    assert column_index([1.0, 2.0, 99.0], [10, 10, 3], [True, True, False]) == np.log(2.0)
    assert np.isnan(column_index([1.0, 99.0], [10, 3], [True, False]))
    assert np.isnan(column_index([0.0, 1.0], [10, 10]))
    with pytest.raises(ValueError, match="equal vectors"):
        column_index([1.0, 2.0], [1.0])


def test_columns_of_a_table():
    env_step = [20, 10, 20, 25, 25, 25]
    window = [1, 0, 0, 2, 0, 1]
    loss = [8.0, 1.0, 2.0, 5.0, 1.0, 3.0]
    count = [10, 10, 10, 5, 10, 10]
    steps, index = column_indices(env_step, window, loss, count, 10)
    assert list(steps) == [10, 20, 25]
    np.testing.assert_allclose(index, [np.nan, np.log(4), np.log(3)])
    with pytest.raises(ValueError, match="one critic"):
        column_indices([10, 10], [0, 0], [1.0, 1.0], [10, 10], 10)


def test_ranking():
    noise = rng()
    made = {
        name: [np.append(np.nan, level + 0.1 * noise.standard_normal(9)) for _ in range(5)]
        for name, level in (("sac", 2.0), ("balanced", 0.5), ("expanded", 0.49))
    }
    ranked = rank(made)
    assert ranked[-1].variant == "sac" and np.isnan(ranked[-1].behind).all()
    assert ranked[1].behind.low > 1 and ranked[1].behind.high < 2
    assert ranked[0].behind.low < 0 < ranked[0].behind.high
    assert ranked[0].behind.estimate == ranked[1].index.estimate - ranked[0].index.estimate
    assert [place.seeds for place in ranked] == [5, 5, 5]
    assert all(place.index.low < place.index.estimate < place.index.high for place in ranked)
    alone = rank({"sac": [[1.0, 2.0]]})[0]
    assert alone.index.estimate == 1.5 and np.isnan(alone.index.low)
    with pytest.raises(ValueError, match="finite"):
        rank({"sac": [[np.nan]]})


def test_analysis_needs_no_torch():
    code = (
        "import sys, diagnostics.metrics.primacy, diagnostics.metrics.expected_counts\n"
        "import fog.records.schema\n"
        "assert 'torch' not in sys.modules, sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
