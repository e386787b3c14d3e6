"""Runs, indices and names of strangers: what does not fit is named and left out."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from diagnostics.plots.layout import crown
from diagnostics.plots.save import save_figure
from diagnostics.report import html as report
from diagnostics.report.execution import Outcome, _write_index, read_index
from diagnostics.runs.directories import RunFiles
from fog.cli import main

FIXTURE = Path(__file__).parents[2] / "fixtures" / "runs" / "cartpole-swingup" / "sac" / "seed0"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    home = tmp_path / "runs" / "cartpole-swingup" / "sac" / "seed0"
    shutil.copytree(FIXTURE, home)
    return home


def test_entries_of_another_type_are_named_and_left_out(run: Path) -> None:
    (run / "config.yaml").write_text("run: {task: [a], seed: 9e99, scale: {a: b}, steps: x}")
    (run / "manifest.json").write_text('{"status": [], "env_step": "x", "metric": null}')
    found = RunFiles.open(run)
    assert found.config == {} and found.manifest == {}
    assert (found.name("task", 2), found.seed) == ("cartpole-swingup", 0)
    assert found.problems == [
        "config.yaml: task is not text: left out",
        "config.yaml: seed is not an integer: left out",
        "config.yaml: steps is not an integer: left out",
        "config.yaml: scale is not a number: left out",
        "manifest.json: status is not text: left out",
        "manifest.json: env_step is not an integer: left out",
    ]


@pytest.mark.parametrize("text", ["2026-13-01", "? [a]\n: b", "!!bool x", "!!int ''", "[" * 3000])
def test_a_config_that_is_no_yaml_is_a_problem_of_its_run(
    text: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "config.yaml").write_text(text)
    assert main(["compare", "--runs", str(run)]) == 0
    assert "config.yaml cannot be read" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["compare", "claims"])
@pytest.mark.parametrize("text", ["a,b\n1,2\n", "env_step,return,updates\ninf,1,1\n"])
def test_a_table_of_another_shape_is_a_problem_of_its_run(
    text: str, command: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("evals.csv", "train.csv"):
        (run / name).write_text(text)
    assert main([command, "--runs", str(run)]) == 0
    streams = capsys.readouterr()
    assert "train.csv lacks the columns" in streams.out + streams.err


@pytest.mark.parametrize(
    "text",
    [
        *("3", "null", "{}", "[3, null]", '[{"name": 3}, {"name": [1]}, {"error": 1}]', "[" * 5000),
        '[{"name": "theirs", "seconds": "long", "error": {"a": 1}}, {"name": 7}]',
    ],
)
def test_an_index_of_another_shape(text: str, tmp_path: Path) -> None:
    (tmp_path / "notebooks.json").write_text(text)
    (tmp_path / "mine.ipynb").write_text('{"cells": [3, {"cell_type": "code"}]}')
    assert "mine" in {entry["name"] for entry in report._notebooks(tmp_path, tmp_path / "a.html")}
    _write_index(tmp_path / "notebooks.json", [Outcome("mine", "mine.ipynb", {}, 1.0, None)])
    assert set(read_index(tmp_path)) in ({"mine"}, {"mine", "theirs"})


@pytest.mark.parametrize("name", ["$x^{$", "$", "a$b$", "\\$", "${}$"])
def test_a_name_that_is_half_a_formula_is_drawn_as_it_stands(name: str, tmp_path: Path) -> None:
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.set_title(name)
    axes.set_ylabel(r"draws in units of $\beta$")
    axes.set_xticks([0, 1], [name, "b"])
    crown(figure, name, [Line2D([], [], label=name)])
    for path in save_figure(figure, "name", tmp_path, pd.DataFrame({"x": [1]}), {}):
        assert path.stat().st_size > 0
    assert axes.yaxis.label.get_parse_math()


def test_a_run_whose_task_is_half_a_formula_has_its_figures(run: Path, tmp_path: Path) -> None:
    config = (run / "config.yaml").read_text().replace("cartpole-swingup", "$x^{$")
    (run / "config.yaml").write_text(config)
    page = tmp_path / "report.html"
    assert main(["report", "--runs", str(run), "--out", str(page)]) == 0
    assert "$x^{$" in page.read_text()


def test_control_characters_of_a_name_do_not_reach_the_warnings_of_libraries(
    run: Path, tmp_path: Path
) -> None:
    """matplotlib names a character that it cannot draw by printing it."""
    config = (run / "config.yaml").read_text().replace("cartpole-swingup", '"\\e]0;mine\\a"', 1)
    (run / "config.yaml").write_text(config)
    page = tmp_path / "report.html"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["report", "--runs", str(run), "--out", str(page)]) == 0
    assert "\\x1b]0;mine\\x07" in page.read_text() and "\x1b" not in page.read_text()


def test_notebooks_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for cells in ([], 3, [{"metadata": []}], [{"metadata": {"tags": 3}}], [3]):
        path = tmp_path / "a.ipynb"
        path.write_text(json.dumps({"cells": cells}))
        assert main(["figures", "--only", str(path), "--runs", str(tmp_path / "none")]) in (0, 2)
        assert capsys.readouterr().err.count("\n") <= 1
