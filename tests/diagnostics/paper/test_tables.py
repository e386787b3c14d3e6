from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from diagnostics.paper import tables as paper
from fog.settings import tasks


def test_every_task_has_four_cells_under_our_names() -> None:
    table = paper.printed()
    assert len(table) == 41 * 4
    assert table.notna().all(axis=None)
    assert set(table["algorithm"]) == set(paper.ALGORITHMS)
    cell = table[(table["task"] == "humanoid-walk") & (table["algorithm"] == "FoG")].iloc[0]
    assert (cell["mean"], cell["std"], cell["group"]) == (932.03, 6.96, "DMC-Hard")


def test_the_tasks_are_those_of_the_trainer() -> None:
    table = paper.tasks().set_index("name")
    assert list(table.index) == list(tasks.registry())
    for name, task in tasks.registry().items():
        row = table.loc[name]
        assert (row["group"], row["metric"], row["normaliser"], row["steps"]) == (
            task.group,
            task.metric,
            task.normaliser,
            task.steps,
        )


def test_mujoco_is_normalised_by_the_best_printed_mean() -> None:
    table = paper.printed()
    best = table[table["group"] == "MuJoCo"].groupby("task")[["mean", "normaliser"]].max()
    assert (best["mean"] == best["normaliser"]).all()


def test_the_normalised_table_follows_from_the_per_task_tables() -> None:
    table = paper.recomputed_normalised()
    assert len(table) == 28
    wrong = table[~table["consistent"]]
    assert wrong.empty, wrong.to_string()


def test_the_brackets_are_narrow_enough_to_refute_other_rules() -> None:
    """Dividing DMC by 1000, or HumanoidBench by success bars, contradicts the printed table."""
    table = paper.recomputed_normalised().merge(
        paper.fixed_normalised(), on=["group", "algorithm"], suffixes=("", "_fixed")
    )
    outside = (table["mean_fixed"] < table["mean_low"] - 0.005) | (
        table["mean_fixed"] > table["mean_high"] + 0.005
    )
    refuted = set(table.loc[outside & (table["algorithm"] == "FoG"), "group"])
    assert {"MuJoCo", "DMC-Medium", "DMC-Hard", "HumanoidBench", "Total"} <= refuted
    assert "Meta-World" not in refuted


def test_fixed_normalisation_by_hand() -> None:
    table = paper.fixed_normalised().set_index(["group", "algorithm"])["mean"]
    cells = paper.printed().set_index(["task", "algorithm"])["mean"]
    hard = ["dog-run", "dog-trot", "dog-walk", "humanoid-run", "humanoid-walk"]
    expected = sum(cells[name, "FoG"] for name in hard) / 5000
    assert table["DMC-Hard", "FoG"] == pytest.approx(expected)


def test_callers_cannot_spoil_the_numbers() -> None:
    table, names = paper.printed(), paper.tasks()
    table["mean"], names["steps"] = 0.0, 0
    assert paper.printed()["mean"].max() > 0
    assert paper.tasks()["steps"].min() > 0


def test_reading_them_imports_neither_fog_nor_torch() -> None:
    code = (
        "import sys; from diagnostics.paper import tables; tables.printed();"
        "assert not {'fog', 'torch'} & set(sys.modules), 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])


def test_the_printed_table_is_the_shared_one() -> None:
    table = pd.read_csv(paper.data_file("paper_tables.csv"))
    assert list(table.columns) == ["table", "task", "algorithm", "mean", "std"]
    assert len(table) == 28 + 41 * 4
