from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import diagnostics
from diagnostics.errors import AnalysisError
from diagnostics.report.compare import compare
from fog.cli import main
from tests.diagnostics.recorded import FIXTURE, TASK, copy, mark


def set_status(run: Path, status: str) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"status": status}))


def test_rows_follow_from_the_runs() -> None:
    runs = diagnostics.load(FIXTURE, grid="all")
    table = compare(runs).set_index("label")
    assert list(table.index) == ["sac", "sac-reset", "fog"]
    facts = runs.runs
    for label, row in table.iterrows():
        seeds = facts[facts["label"] == label]
        assert row["seeds"] == 2
        assert row["final"] == pytest.approx(seeds["final_score"].mean())
        assert row["best"] == pytest.approx(seeds["best_score"].mean())
        assert (row["grid"], seeds["grid"].unique().tolist()) == ("all", ["all"])
        # With two seeds nothing is trimmed, and Student's interval is much wider than they are.
        expected = stats.ttest_1samp(seeds["final_score"], 0).confidence_interval(0.95)
        assert row["iqm"] == pytest.approx(row["final"])
        assert (row["iqm_low"], row["iqm_high"]) == pytest.approx(tuple(expected))
        assert row["status"] == "finished"


def test_primacy_and_dormancy_by_hand() -> None:
    runs = diagnostics.load(FIXTURE / TASK / "fog" / "seed0")
    row = compare(runs).iloc[0]
    loss = runs.critic_loss
    loss = loss[(loss["critic"] == "online") & (loss["count"] == 100)]
    indices = []
    for _, column in loss.groupby("env_step"):
        values = column.sort_values("window")["scaled"].to_numpy()
        if len(values) > 1:
            indices.append(np.log(values[-1] / values[: len(values) // 2].mean()))
    assert row["primacy"] == pytest.approx(np.mean(indices))
    scores = runs.dormancy
    scores = scores[(scores["network"] == "online") & (scores["phase"] == "cadence")]
    scores = scores[scores["env_step"] == scores["env_step"].max()]
    for score in ("activation", "gradient"):
        dormant = [neurons <= 0.1 * neurons.mean() for neurons in scores[score]]
        assert row[f"dormant_{score}"] == pytest.approx(np.concatenate(dormant).mean())
    assert row["dormant_activation"] != row["dormant_gradient"]


def test_sorting(tmp_path: Path) -> None:
    runs = diagnostics.load(FIXTURE)
    final = compare(runs, sort="final")["final"]
    assert final.is_monotonic_decreasing
    assert compare(runs, sort="primacy")["primacy"].is_monotonic_increasing
    with pytest.raises(AnalysisError, match="did you mean 'final'"):
        compare(runs, sort="finale")


def test_one_seed_has_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy(tmp_path, "sac")
    assert main(["compare", "--runs", str(tmp_path)]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("sac "))
    assert "[" not in row
    assert compare(diagnostics.load(tmp_path))[["iqm_low", "iqm_high"]].isna().all(axis=None)


def test_mixed_scales_get_rows_of_their_own(tmp_path: Path) -> None:
    copy(tmp_path / "a", "sac", 0)
    copy(tmp_path / "b", "sac", 0, scale=0.5)
    table = compare(diagnostics.load(tmp_path))
    assert list(table["label"]) == ["sac (scale 0.1)", "sac (scale 0.5)"]
    assert list(table["seeds"]) == [1, 1]


def test_unfinished_killed_and_probeless_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running, killed = copy(tmp_path, "sac", 0), copy(tmp_path, "fog", 0, probes=False)
    copy(tmp_path, "sac", 1)
    for run in (running, killed):
        set_status(run, "running")
        lines = (run / "train.csv").read_text().splitlines()
        (run / "train.csv").write_text("\n".join(lines[:8]) + "\n")
        lines = (run / "evals.csv").read_text().splitlines()
        (run / "evals.csv").write_text("\n".join(lines[:5]) + "\n4")
        manifest = json.loads((run / "manifest.json").read_text())
        del manifest["env_step"], manifest["final_return"]
        (run / "manifest.json").write_text(json.dumps(manifest))
    for path in killed.iterdir():
        os.utime(path, (time.time() - 10 * 3600,) * 2)
    assert main(["compare", "--runs", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "1 running at 56 %, 1 finished" in out
    assert "silent for 10 h at 56 %" in out
    assert f"problem: {killed}: evals.csv ends in half a line" in out


def test_a_run_without_any_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = copy(tmp_path, "sac", probes=False)
    for name in ("evals.csv", "train.csv"):
        (run / name).unlink()
    set_status(run, "failed")
    assert main(["compare", "--runs", str(tmp_path)]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("sac"))
    assert line.split()[:4] == ["sac", "1", "-", "-"]


def test_the_terminal_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--runs", str(FIXTURE), "--variant", "sac", "fog"]) == 0
    out = capsys.readouterr().out
    assert f"{TASK} (return); best in the paper at 150,000 steps: FoG 879.58" in out
    assert "sac-reset" not in out
    assert max(map(len, out.splitlines())) <= 120
    header = next(line for line in out.splitlines() if line.startswith("variant"))
    assert "best (25k)" in header and "dormant grad.  dormant act." in header
    assert "on the grid of 25k steps at scale 1 (2,500 steps here)" in out


def test_the_grid_can_be_chosen_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Evaluations every 100 steps at scale 0.1: 2k is every second one."""
    found = {}
    for grid in ("all", "1000", "2k"):
        assert main(["compare", "--runs", str(FIXTURE), "--grid", grid, "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)["rows"]
        found[grid] = [row["best"] for row in rows]
        steps = {"all": None, "1000": 100, "2k": 200}[grid]
        named = "1k" if grid == "1000" else grid
        assert all((row["grid"], row["grid_steps"]) == (named, steps) for row in rows)
    assert found["all"] == found["1000"]
    assert all(some <= every for some, every in zip(found["2k"], found["all"], strict=True))
    assert found["2k"] != found["all"]
    assert main(["compare", "--runs", str(FIXTURE), "--grid", "all"]) == 0
    out = capsys.readouterr().out
    assert "best (all)" in out and "among all evaluations" in out


def test_many_runs_share_one_line_of_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *others = (copy(tmp_path, seed=seed) for seed in range(4))
    for run in (first, *others):
        mark(run / "probes" / "dormancy", "1")
    assert main(["compare", "--runs", str(tmp_path)]) == 0
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("problem")]
    assert line.startswith(f"problem: {first} and 3 more: probes/dormancy has schema version 1")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--runs", str(FIXTURE), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["label"] for row in document["rows"]] == ["sac", "sac-reset", "fog"]
    assert document["problems"] == []


def test_json_has_no_nan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy(tmp_path, "sac", probes=False)
    assert main(["compare", "--runs", str(tmp_path), "--json"]) == 0
    out = capsys.readouterr().out
    assert "NaN" not in out
    assert json.loads(out)["rows"][0]["primacy"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--runs", "EMPTY"], "no runs in"),
        (["--runs", "EMPTY/nowhere"], "does not exist"),
        (["--runs", "FIXTURE", "--task", "cartpole-swing"], "did you mean 'cartpole-swingup'"),
        (["--runs", "FIXTURE", "--variant", "sac-rest"], "did you mean 'sac-reset'"),
        (["--runs", "FIXTURE", "--sort", "bst"], "did you mean 'best'"),
        (["--runs", "FIXTURE", "--sort", "dormant"], "did you mean 'dormant_"),
        (["--runs", "FIXTURE", "--grid", "often"], "unknown grid 'often': give steps such as 25k"),
        (["--runs", "FIXTURE", "--grid", "0k"], "unknown grid '0k'"),
        (["--rusn", "FIXTURE"], "did you mean '--runs'"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    places = {"EMPTY": str(tmp_path), "FIXTURE": str(FIXTURE)}
    for name, path in places.items():
        arguments = [argument.replace(name, path) for argument in arguments]
    assert main(["compare", *arguments]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("fog: ") and streams.err.count("\n") == 1
    assert said in streams.err


def test_meta_world_is_compared_by_success(tmp_path: Path) -> None:
    run = copy(tmp_path, "sac", probes=False)
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"metric": "success"}))
    evals = pd.read_csv(run / "evals.csv")
    evals["success_once"] = (evals["episode"] % 2).astype(int)
    evals.to_csv(run / "evals.csv", index=False)
    row = compare(diagnostics.load(tmp_path, grid="all")).iloc[0]
    assert (row["final"], row["best"], row["metric"]) == (0.5, 0.5, "success")


def test_best_below_final_is_explained_where_it_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["compare", "--runs", str(FIXTURE)]) == 0
    assert "below final where the last evaluation is the highest" in capsys.readouterr().out


def test_a_best_that_no_evaluation_is_on_the_grid_for_is_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = {}
    for grid in ("25k", "2k", "all"):
        assert main(["compare", "--runs", str(FIXTURE), "--grid", grid]) == 0
        said[grid] = "best is - where no evaluation" in capsys.readouterr().out
    assert said == {"25k": True, "2k": False, "all": False}
