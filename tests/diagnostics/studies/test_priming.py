"""Returns by dose and cure, from copies of a recorded run whose returns are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from diagnostics.metrics import student
from diagnostics.studies import priming
from diagnostics.studies.page import MissingDataError, Page
from tests.diagnostics.plots.test_legibility import colliding, outside
from tests.diagnostics.recorded import copy

RETURNS = {
    ("plain-sac", 0): (50.0, 40.0, 60.0),
    ("plain-sac", 100_000): (1.0, 4.0, 2.0),
    ("plain-sac-reset", 100_000): (9.0, 11.0, 8.0),
    ("plain-sac-reset", 0): (17.0, 18.0, 22.0),
    ("norm-sac", 0): (80.0, 90.0, 70.0),
    ("norm-sac", 100_000): (120.0, 90.0, 150.0),
}


def trained(home: Path) -> Path:
    for (variant, dose), values in RETURNS.items():
        for seed, value in enumerate(values):
            run = copy(
                home / str(dose), variant, seed, like="sac", probes=False, priming_updates=dose
            )
            evals = pd.read_csv(run / "evals.csv")
            evals["return"] = value
            evals.to_csv(run / "evals.csv", index=False)
    return home


def test_means_and_intervals_stand_where_the_runs_are(tmp_path: Path) -> None:
    page = Page.open(str(trained(tmp_path)), "figures", variants=priming.STUDY.variants)
    figure, table = priming.returns(page)
    assert not outside(figure) and not colliding(figure)
    assert len(table) == len(RETURNS) and set(table["seeds"]) == {3}
    row = table.set_index(["family", "condition"])
    for (variant, dose), values in RETURNS.items():
        family = "SAC with LayerNorm" if variant == "norm-sac" else "SAC without LayerNorm"
        condition = f"{dose}{variant.removeprefix('plain-sac').removeprefix('norm-sac')}"
        found = row.loc[(family, condition), ["mean", "low", "high"]]
        assert tuple(found) == pytest.approx(student.mean(values))
    (axis,) = figure.axes
    # Doses and cures that nobody trained have no place.
    assert [text.get_text() for text in axis.get_xticklabels()] == ["0", "100k"] + 2 * [
        "later\nresets"
    ]
    marks = [line for line in axis.lines if len(line.get_xdata()) == 12]
    assert sorted(marks[0].get_ydata()) == sorted(
        value for (name, _), values in RETURNS.items() if name != "norm-sac" for value in values
    )


def test_values_have_geometric_means_on_a_logarithmic_axis(tmp_path: Path) -> None:
    sizes = {("plain-sac", 0): (10.0, 12.0, 11.0), ("plain-sac", 100_000): (1e6, 1e8, 1e7)}
    for (variant, dose), values in sizes.items():
        for seed, value in enumerate(values):
            run = copy(
                tmp_path / str(dose), variant, seed, like="sac", probes=False, priming_updates=dose
            )
            train = pd.read_csv(run / "train.csv")
            train["q"] = np.where(train["env_step"] > 0.8 * train["env_step"].max(), -value, 3.0)
            train.to_csv(run / "train.csv", index=False)
    page = Page.open(str(tmp_path), "figures", variants=priming.STUDY.variants)
    figure, table = priming.values(page)
    assert not outside(figure) and not colliding(figure)
    row = table.set_index("condition")
    for (_, dose), values in sizes.items():
        expected = np.exp(student.mean(np.log(values)))
        found = row.loc[str(dose), ["mean", "low", "high"]].astype(float)
        assert tuple(found) == pytest.approx(tuple(expected))
    assert figure.axes[0].get_yscale() == "log"


def test_without_runs_of_the_study_it_says_so(tmp_path: Path) -> None:
    copy(tmp_path, "sac", 0, probes=False)
    page = Page.open(str(tmp_path), "figures", variants=priming.STUDY.variants)
    with pytest.raises(MissingDataError, match="no run of plain-sac"):
        priming.returns(page)
