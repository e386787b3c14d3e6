"""An agent whose values have diverged is told so, and no other."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
import yaml

import diagnostics
from diagnostics.diagnosis.divergence import note, sizes
from tests.diagnostics.recorded import copy


def trained(home: Path, values: dict[int, float]) -> Path:
    """A seed for each size of its values; its evaluations bring half a reward a step."""
    for seed, size in values.items():
        run = copy(home, "sac", seed)
        train = pd.read_csv(run / "train.csv")
        train["q"] = size
        train.to_csv(run / "train.csv", index=False)
        evals = pd.read_csv(run / "evals.csv")
        evals["return"] = 0.5 * evals["length"]
        evals.to_csv(run / "evals.csv", index=False)
    return home


def test_sizes_are_those_of_the_runs(tmp_path: Path) -> None:
    runs = diagnostics.load(trained(tmp_path, {0: 40.0, 1: -5e7}))
    found = sizes(runs).join(runs.identity.set_index("run")["seed"]).set_index("seed")
    assert found["late"].to_dict() == {0: 40.0, 1: 5e7}
    assert found["possible"].to_list() == pytest.approx([100.0, 100.0])


@pytest.mark.parametrize(
    ("late", "told"),
    [
        ([40.0, 999.0], None),
        ([1001.0], "Values have diverged: the mean Q is 1,000 in size late in training, where"),
        ([40.0, 22_345.0, 5e7], "Values have diverged in 2 of 3 seeds: the mean Q is 25,000,000"),
        ([math.inf], "Values have diverged: the mean Q is infinite in size"),
        ([math.nan, 40.0], "Whether values have diverged is not known: no Q was recorded"),
        ([math.nan, 5e7], "Values have diverged in 1 of 2 seeds"),
    ],
)
def test_values_ten_times_what_returns_allow_have_diverged(
    late: list[float], told: str | None
) -> None:
    found = note(pd.DataFrame({"late": late, "possible": 100.0}))
    assert found is None if told is None else (found or "").startswith(told)


def test_an_unknown_bound_is_told() -> None:
    found = note(pd.DataFrame({"late": [40.0], "possible": [math.nan]}))
    assert found and "no evaluation or discount was recorded" in found
    found = note(pd.DataFrame({"late": [math.inf], "possible": [math.nan]}))
    assert found and found.startswith("Values have diverged: the mean Q is infinite in size late")
    assert "returns allow" not in found


def test_a_diagnosis_says_so(tmp_path: Path) -> None:
    (found,) = diagnostics.diagnose(trained(tmp_path, {0: 40.0, 1: 5e7}))
    assert found.verdict in ("clear signs", "some signs")
    assert found.notes[0].startswith("Values have diverged in 1 of 2 seeds")


def test_runs_without_a_discount_are_diagnosed_too(tmp_path: Path) -> None:
    for path in trained(tmp_path, {0: 40.0}).rglob("config.yaml"):
        settings = yaml.safe_load(path.read_text())
        for group in settings.values():
            if isinstance(group, dict):
                group.pop("discount", None)
        path.write_text(yaml.safe_dump(settings))
    (found,) = diagnostics.diagnose(tmp_path)
    assert "Values have diverged" not in " ".join(found.notes)
    assert "no evaluation or discount was recorded" in " ".join(found.notes)
