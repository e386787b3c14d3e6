"""Draw counts beside the expectation of their law."""

from __future__ import annotations

import numpy as np
import pytest

from diagnostics.probes.sample_counts import SampleCounts
from tests.diagnostics.probes.stage import SIZE, build


@pytest.mark.parametrize("variant", ["sac", "balanced-sac"])
@pytest.mark.parametrize("added", [SIZE, 90])
def test_sample_counts_beside_their_expectation(tmp_path, variant, added):
    settings = {"epsilon": 0.05, "tau": 0.2} if variant == "balanced-sac" else {}
    stage = build(tmp_path, SampleCounts(bins=7), variant=variant, added=added, **settings)
    stage.probes.window()
    expected, variance = np.zeros(added), np.zeros(added)
    for t in range(17, added + 1):
        stored = np.arange(max(0, t - SIZE), t)
        weight = np.ones(len(stored))
        if variant == "balanced-sac":
            weight = np.maximum(0.2, 0.95 ** (t - 1 - stored))
        p = weight / weight.sum()
        expected[stored] += 16 * p
        variance[stored] += 16 * p * (1 - p)
    counts = stage.replay.counts
    table = stage.read("sample_counts")
    assert table["start"].iloc[0] == 0 and table["end"].iloc[-1] == added and len(table) == 7
    for _, row in table.iterrows():
        inside = slice(int(row["start"]), int(row["end"]))
        assert row["count"] == counts[inside].sum()
        assert row["expected"] == pytest.approx(expected[inside].sum(), rel=1e-9)
        assert row["variance"] == pytest.approx(variance[inside].sum(), rel=1e-9)
    fit = stage.read("sample_fit").iloc[0]
    assert fit["draws"] == counts.sum() == table["expected"].sum().round(6)
    known = variance > 0
    chi = np.mean((counts[known] - expected[known]) ** 2 / variance[known])
    assert fit["chi_square"] == pytest.approx(chi, rel=1e-9)
    assert abs(fit["z"]) < 4
    full = stage.read("sample_counts_full")["counts"].iloc[0]
    assert np.array_equal(full, counts)


def test_sample_counts_leaves_open_what_has_no_closed_form(tmp_path):
    stage = build(tmp_path, SampleCounts(), variant="per-sac")
    stage.probes.window()
    assert stage.read("sample_counts")["expected"].isna().all()
    assert stage.read("sample_fit")["chi_square"].isna().all()
    assert stage.read("sample_counts")["count"].sum() == stage.replay.counts.sum()


def test_sample_counts_that_joined_late_claims_no_expectation(tmp_path):
    stage = build(tmp_path, SampleCounts())
    stage.probes._probes["sample_counts"]._draws[:30] = 0
    stage.probes.window()
    assert stage.read("sample_fit")["chi_square"].isna().all()
