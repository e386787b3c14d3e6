"""Which signs separate, and where the thresholds lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest, spearmanr
from sklearn.metrics import roc_auc_score

from diagnostics.diagnosis.calibration import (
    USABLE,
    Calibration,
    area,
    correlation,
    exact_interval,
    threshold,
)
from diagnostics.diagnosis.signs import BY_NAME, SIGNS
from diagnostics.errors import AnalysisError
from tests.diagnostics.diagnosis.known import GOOD, calibration, table


def test_the_area_is_that_of_the_roc_curve() -> None:
    rng = np.random.default_rng(1)
    sick, healthy = rng.normal(0.7, 1, 30).round(1), rng.normal(0, 1, 40).round(1)
    truth = np.r_[np.ones(30), np.zeros(40)]
    found = area(sick, healthy)
    assert found.estimate == pytest.approx(roc_auc_score(truth, np.r_[sick, healthy]), abs=1e-12)
    assert found.low < found.estimate < found.high < 1


def test_the_areas_interval_covers() -> None:
    """Two normal groups one standard deviation apart have the area Phi(1 / sqrt 2) = 0.760."""
    rng = np.random.default_rng(2)
    drawn = [area(rng.normal(1, 1, 24), rng.normal(0, 1, 24), seed) for seed in range(200)]
    covered = np.mean([found.low <= 0.7602 <= found.high for found in drawn])
    assert 0.89 <= covered <= 0.98


def test_shares_have_exact_intervals() -> None:
    for count, of in ((0, 4), (2, 2), (5, 9), (16, 16)):
        truth = binomtest(count, of).proportion_ci(method="exact")
        assert exact_interval(count, of) == pytest.approx((truth.low, truth.high), abs=1e-9)


def test_the_correlation_is_spearmans() -> None:
    rng = np.random.default_rng(3)
    dose = np.repeat([0, 3_000, 10_000, 100_000], 6)
    values = dose**0.2 + rng.normal(0, 3, 24)
    found = correlation(dose, values)
    assert found.estimate == pytest.approx(spearmanr(dose, values).statistic, abs=1e-12)
    assert found.low < found.estimate < found.high


def test_only_signs_that_separate_have_a_threshold() -> None:
    known = calibration()
    assert set(known.thresholds) == set(GOOD)
    assert 0.2 < known.thresholds["plasticity"] < 0.5
    assert -0.7 < known.thresholds["primacy_index"] < 0.7
    for name, found in known.separations.items():
        usable = min(found.from_unprimed.low, found.from_reset.low) >= USABLE
        assert usable == (name in GOOD)


def test_a_sign_that_separates_the_wrong_way_round_is_not_used() -> None:
    values = table()
    values["dormant_activation"] = -values["primacy_index"]
    found = Calibration(values).separations["dormant_activation"]
    assert found.from_unprimed.estimate == 0
    assert "dormant_activation" not in Calibration(values).thresholds


def test_a_sign_that_a_reset_does_not_end_is_not_used() -> None:
    """It tells what was done to an agent and not how it is."""
    values = table()
    values["draws_imbalance"] = values["dose"].astype(float)
    known = Calibration(values)
    assert known.separations["draws_imbalance"].from_unprimed.estimate == 1
    assert "draws_imbalance" not in known.thresholds


def test_held_out_runs_decide_nothing() -> None:
    values = table()
    changed = values.copy()
    rows = changed["set"] == "held out"
    changed.loc[rows, [sign.name for sign in SIGNS]] = 0.0
    assert Calibration(changed).thresholds == Calibration(values).thresholds


def test_the_threshold_maximises_youdens_index() -> None:
    values = table()
    rows = values[values["set"] == "calibration"]
    for name in ("plasticity", "offpolicy", "srank"):
        sign = BY_NAME[name]
        turn = 1 if sign.higher else -1
        sick = turn * rows[name][rows["group"] == "primed"]
        well = turn * rows[name][rows["group"].isin(["unprimed", "reset"])]

        def youden(at: float, sick: object = sick, well: object = well) -> float:
            return float(np.mean(sick > at) + np.mean(well < at))

        best = max(youden(at) for at in np.linspace(-3, 3, 2_001))
        assert youden(turn * threshold(sign, rows)) == pytest.approx(best)


def test_the_committed_table_can_be_read() -> None:
    known = Calibration.read()
    assert known.task == "dmc:cheetah-run"
    assert set(known.values["group"]) <= {
        "primed", "unprimed", "reset", "protected", "treated", "low dose"
    }  # fmt: skip


def test_a_table_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    with pytest.raises(AnalysisError, match="cannot read the calibration"):
        Calibration.read(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(AnalysisError, match=r"lacks the column 'set'.*fog calibrate"):
        Calibration.read(path)
    table().iloc[:0].to_csv(path, index=False)
    with pytest.raises(AnalysisError, match="has no run that calibrates"):
        Calibration.read(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(AnalysisError, match="cannot read the calibration"):
        Calibration.read(path)
