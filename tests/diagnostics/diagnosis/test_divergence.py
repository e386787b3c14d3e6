"""An agent whose values have diverged is told so, and no other."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import diagnostics
from diagnostics.diagnosis.divergence import diverged
from fog.cli import main
from tests.diagnostics.recorded import copy


def trained(home: Path, sizes: dict[int, float]) -> Path:
    """A seed for each size of its values; its evaluations bring half a reward a step."""
    for seed, size in sizes.items():
        run = copy(home, "sac", seed, probes=False)
        train = pd.read_csv(run / "train.csv")
        train["q"] = size
        train.to_csv(run / "train.csv", index=False)
        evals = pd.read_csv(run / "evals.csv")
        evals["return"] = 0.5 * evals["length"]
        evals.to_csv(run / "evals.csv", index=False)
    return home


def test_values_ten_times_what_returns_allow_have_diverged(tmp_path: Path) -> None:
    runs = diagnostics.load(trained(tmp_path, {0: 40.0, 1: 999.0, 2: 1001.0, 3: -5e7}))
    seeds = runs.identity.set_index("run")["seed"]
    found = diverged(runs)
    assert sorted(seeds[found.index]) == [2, 3]
    assert found["possible"].to_list() == pytest.approx([100.0, 100.0])


def test_diagnose_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = trained(tmp_path, {0: 40.0, 1: 22_345.0, 2: -5e7})
    assert main(["diagnose", str(home)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Values have diverged in 2 of 3 seeds: |Q| is 25,000,000 late in training" in text
    assert "where returns allow about 100." in text


def test_healthy_values_are_not_mentioned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", str(trained(tmp_path, {0: 40.0}))]) == 0
    assert "diverged" not in capsys.readouterr().out
