"""Tidy tables loaded, as themselves and as runs; scores on one grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import diagnostics
from diagnostics.errors import AnalysisError, RunsWarning
from diagnostics.metrics.scores import Grid
from diagnostics.paper.names import label
from diagnostics.peers.load import load_peers
from diagnostics.peers.scores import common_grid, mean_over_tasks, scores, spacing
from diagnostics.report.compare import compare
from diagnostics.runs.directories import RunFiles
from diagnostics.runs.published import in_frames
from fog.cli import main
from tests.diagnostics.peers import madeup
from tests.diagnostics.recorded import FIXTURE, copy


def test_a_folder_is_loaded(tmp_path: Path) -> None:
    madeup.tidy(
        tmp_path,
        xqc={"dog-run": {0: {100_000: 5.0}}},
        tdmpc2={"mw-assembly": {1: {0: 0.5}}, "dog-run": {1: {0: 1.0}}},
    )
    (tmp_path / "summary.csv").write_text("method,rule\n")
    peers = load_peers(tmp_path)
    assert peers.methods == ["tdmpc2", "xqc"]
    assert len(peers.curves) == 3
    assert set(peers.curves["steps"]) == {1_000_000}
    assert list(peers.select(["xqc"]).curves["value"]) == [5.0]
    overview = peers.overview().set_index("method")
    assert overview.loc["xqc", "repository"] == "danielpalenicek/xqc"
    with pytest.raises(AnalysisError, match="'tdmpc': did you mean 'tdmpc2'"):
        peers.select(["tdmpc"])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (("method,task", "algo,task"), "is not in the tidy form: its first line must be"),
        (("dog-run", "dog-rnu"), "did you mean 'dog-run'"),
        (("return", "success"), "metric 'success' for dog-run, expected 'return'"),
        ((",100000,", ",100k,"), "cannot read"),
        ((",100000,", ",-1,"), "env_step below 0"),
        (("mine,dog-run,0,100000", "mine,,0,100000"), "a row lacks its"),
    ],
)
def test_a_damaged_table_is_one_line(tmp_path: Path, damage: tuple[str, str], said: str) -> None:
    madeup.tidy(tmp_path, mine={"dog-run": {0: {100_000: 1.0, 200_000: 2.0}}})
    path = tmp_path / "mine.csv"
    path.write_text(path.read_text().replace(*damage))
    with pytest.raises(AnalysisError) as error:
        load_peers(tmp_path)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_mixed_curves_are_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    madeup.tidy(
        tmp_path, mine={"dog-run": {0: {100_000: 1.0, 200_000: 2.0}}, "dog-walk": {0: {0: 1.0}}}
    )
    path = tmp_path / "mine.csv"
    path.write_text(path.read_text().replace(",200000,", ",100000,"))
    peers = load_peers(tmp_path)
    assert set(peers.curves["task"]) == {"dog-walk"}
    assert peers.problems == [
        "mine: left out dog-run, where one seed has two values at a step; "
        "import the official file instead"
    ]
    with pytest.warns(RunsWarning, match="mine: left out dog-run"):
        diagnostics.load(tmp_path)
    assert main(["claims", "--peers", str(tmp_path)]) == 0
    assert capsys.readouterr().err.startswith("problem: mine: left out dog-run")


def test_a_method_in_two_files_is_refused(tmp_path: Path) -> None:
    madeup.tidy(tmp_path, mine={"dog-run": {0: {0: 1.0}}})
    (tmp_path / "copy.csv").write_text((tmp_path / "mine.csv").read_text())
    with pytest.raises(AnalysisError, match="both hold mine: keep one of them"):
        load_peers(tmp_path)


def test_published_curves_load_like_runs(tmp_path: Path) -> None:
    curve = {0: 1.0, 100_000: 7.0, 500_000: 9.0, 600_000: 8.0, 700_000: 99.0}
    madeup.tidy(
        tmp_path,
        bro_utd10={"Ant-v4": {1: curve, 2: curve}},
        tdmpc2={"mw-assembly": {1: {500_000: 0.5, 1_000_000: 1.0}}},
    )
    runs = diagnostics.load(tmp_path, grid="all")
    assert len(runs) == 3 and runs.problems.empty
    facts = runs.runs.set_index("variant")
    # T is 600k on MuJoCo: before it 9, at it 8, and what comes later is not looked at.
    assert list(facts.loc["peer:bro-utd10", "best_score"]) == [9.0, 9.0]
    assert list(facts.loc["peer:bro-utd10", "final_score"]) == [8.0, 8.0]
    assert facts.loc["peer:tdmpc2", "best_score"] == 0.5
    assert facts.loc["peer:tdmpc2", "final_score"] == 1.0
    assert set(runs.runs["status"]) == {"published"}
    assert set(runs.runs["label"]) == {"peer:bro-utd10", "peer:tdmpc2"}
    assert set(compare(runs)["status"]) == {"published"}
    assert label("peer:bro-utd10 (scale 1)") == "BRO, replay ratio 10, published"


def test_a_published_sac_is_not_a_seed_of_ours(tmp_path: Path) -> None:
    madeup.tidy(tmp_path, sac={"cartpole-swingup": {0: {50_000: 1.0}}})
    runs = diagnostics.load([FIXTURE, tmp_path])
    labels = set(runs.runs["label"][runs.runs["variant"].str.contains("sac")])
    assert len(labels) == 3
    assert any(name.startswith("peer:sac") for name in labels)


def test_steps_of_ours_become_frames(tmp_path: Path) -> None:
    run = RunFiles.open(copy(tmp_path, "sac", probes=False, action_repeat=2))
    framed = in_frames(run)
    plain, counted = run.csv("evals")[0], framed.csv("evals")[0]
    assert plain is not None and counted is not None
    assert counted["env_step"].to_pylist() == [2 * step for step in plain["env_step"].to_pylist()]
    assert framed.config["steps"] == 2 * run.config["steps"]
    once = RunFiles.open(copy(tmp_path / "once", "sac", probes=False))
    assert in_frames(once) is once


def test_best_scores_are_taken_on_the_coarsest_grid(tmp_path: Path) -> None:
    fine = dict.fromkeys(range(25000, 1000001, 25000), 10.0) | {125_000: 50.0}
    coarse = dict.fromkeys(range(100000, 1000001, 100000), 20.0)
    odd = dict.fromkeys(range(16666, 1000000, 16666), 30.0)
    madeup.tidy(
        tmp_path,
        bro_utd2={"dog-run": {0: fine}},
        xqc={"dog-run": {0: coarse}},
        sac={"dog-run": {0: odd}},
    )
    peers = load_peers(tmp_path)
    assert dict(spacing(peers)) == {
        ("bro-utd2", "dog-run"): 25_000,
        ("sac", "dog-run"): 25_000,
        ("xqc", "dog-run"): 100_000,
    }
    assert common_grid(peers).name == "100k"
    found = scores(peers).set_index("method")
    # The peak at 125k is on the file's own grid, not on that of 100k.
    assert found.loc["bro-utd2", "own_score"] == 50.0
    assert found.loc["bro-utd2", "best_score"] == 10.0
    assert found.loc["xqc", "best_score"] == found.loc["xqc", "own_score"] == 20.0
    assert set(found["grid_steps"]) == {100_000}
    assert scores(peers, Grid(25_000)).set_index("method").loc["bro-utd2", "best_score"] == 50.0


def test_the_interval_of_one_task_is_students() -> None:
    values = np.array([1.0, 2.0, 4.0, 4.5])
    found = mean_over_tasks({"a": (values.mean(), values.var(ddof=1), len(values))})
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert np.isnan(mean_over_tasks({"a": (1.0, np.nan, 1)}).low)


def test_the_interval_over_tasks_covers_what_it_says() -> None:
    rng = np.random.default_rng(0)
    spreads = np.array([1.0, 5.0, 0.2])
    hits = 0
    for _ in range(2000):
        draws = rng.standard_normal((3, 3)) * spreads[:, None]
        found = mean_over_tasks(
            {str(k): (row.mean(), row.var(ddof=1), 3) for k, row in enumerate(draws)}
        )
        hits += found.low <= 0 <= found.high
    assert 0.93 < hits / 2000 < 0.98
