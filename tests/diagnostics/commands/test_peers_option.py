"""`--peers` of compare, claims, report and figures, on made-up curves."""

from __future__ import annotations

import json
from pathlib import Path

import papermill
import pytest

from diagnostics.paper import tables as paper
from diagnostics.peers.load import load_peers
from diagnostics.studies.page import Page
from diagnostics.studies.shared import opponent_scores, opponents
from fog.cli import main
from tests.diagnostics.peers import madeup
from tests.diagnostics.recorded import FIXTURE, copy
from tests.test_notebooks import outputs
from tests.test_notebooks import test_notebook_is_prose_and_calls as prose_and_calls

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return madeup.small(tmp_path_factory.mktemp("peers"))


def test_compare_sets_peers_beside_ours(peers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--runs", str(FIXTURE), "--peers", str(peers), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["task"] for row in rows} == {"cartpole-swingup"}
    found = {row["label"]: row for row in rows}
    assert {"peer:bro-utd2 (scale 1)", "sac (scale 0.1)"} <= set(found)
    # One grid for all: that of the coarsest file, times the scale.
    assert {row["grid"] for row in rows} == {"100k"}
    assert found["peer:bro-utd2 (scale 1)"]["grid_steps"] == 100_000
    assert found["sac (scale 0.1)"]["grid_steps"] == 10_000
    assert main(["compare", "--runs", str(FIXTURE), "--peers", str(peers), "--grid", "25k"]) == 0
    assert "best (25k)" in capsys.readouterr().out


def test_claims_of_peers_need_no_runs(
    peers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--figures", str(tmp_path)]
    assert main(["claims", "--peers", str(peers), "--json", *out]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [entry["claim"] for entry in document] == [
        "FoG is ahead of TD-MPC2",
        "FoG is ahead of SimBa",
        "FoG is ahead of BRO",
    ]
    printed = [
        row
        for row in document[2]["evidence"]
        if row["what"].endswith("printed cells") and row["task"] == "HumanoidBench"
    ]
    # 0.733 - 0.472 over the constants of the suite: the means of the two columns.
    assert printed[0]["estimate"] == pytest.approx(0.261, abs=0.002)
    assert printed[0]["verdict"] == "reproduced"
    assert (tmp_path / "claims_published_runs.png").exists()


def test_claims_of_runs_and_peers_together(peers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--runs", str(FIXTURE), "--peers", str(peers)]) == 0
    told = capsys.readouterr().out
    assert "older transitions are drawn more" in told
    assert "FoG is ahead of BRO" in told
    assert "FoG's seeds are not public" in told


def test_the_report_shows_peers(peers: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    arguments = ["--runs", str(FIXTURE), "--peers", str(peers), "--out", str(page)]
    assert main(["report", *arguments]) == 0
    text = page.read_text()
    assert "BRO, replay ratio 10, published" in text
    assert "grid of 100k" in text or "100k grid" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "--runs", "RUNS", "--peers", "NOWHERE"], "does not exist"),
        (["compare", "--runs", "RUNS", "--peers", "RUNS"], "holds no published curves"),
        (["claims", "--peers", "RUNS"], "holds no published curves"),
        (["report", "--runs", "RUNS", "--peers", "RUNS"], "holds no published curves"),
        (["figures", "--runs", "RUNS", "--peers", "RUNS"], "holds no published curves"),
        (["figures", "--only", "theorem_1", "--peers", "PEERS"], "draws no published curves"),
        (["figures", "--only", "published_tables", "-p", "peers", "x"], "is set by --peers"),
        (["compare", "--runs", "OTHER", "--peers", "PEERS"], "no published runs of gym:Pend"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str],
    said: str,
    peers: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if "OTHER" in arguments:
        copy(tmp_path / "other", "sac", probes=False, task="gym:Pendulum-v1")
    places = {"RUNS": FIXTURE, "NOWHERE": "nowhere", "PEERS": peers, "OTHER": "other"}
    assert main([str(places.get(argument, argument)) for argument in arguments]) == 2
    streams = capsys.readouterr()
    assert streams.err.startswith("fog: ") and streams.err.count("\n") == 1
    assert said in streams.err


def test_published_tables_is_prose_and_calls() -> None:
    prose_and_calls("published_tables")


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        (
            "published_tables",
            {
                "published_cells",
                "published_scores",
                "published_scores_best_run",
                "published_grid_gain",
            },
        ),
        pytest.param(
            "main_results",
            {
                "learning_curves_DMC-Easy",
                "normalised_scores",
                "normalised_scores_best_run",
                "opponents_16_tasks",
                "opponents_efficiency",
                "opponents_scores",
                *(f"opponents_{group}" for group in paper.tasks()["group"]),
            },
            marks=pytest.mark.slow,
        ),
    ],
)
def test_notebooks_draw_published_curves(
    name: str, figures: set[str], peers: Path, tmp_path: Path
) -> None:
    parameters = {"peers": str(peers), "out": str(tmp_path)}
    if name == "main_results":
        parameters |= {"runs": str(FIXTURE), "grid": "all"}
    done = papermill.execute_notebook(
        ROOT / "notebooks" / f"{name}.ipynb",
        tmp_path / f"{name}.ipynb",
        parameters=parameters,
        kernel_name="python3",
        cwd=ROOT,
        progress_bar=False,
    )
    assert {path.stem for path in tmp_path.glob("*.png")} == figures
    missing = [text for text in outputs(done, "text/markdown") if text.startswith("**Missing.**")]
    assert all("no run of a task in" in text.lower() for text in missing)
    stderr = [
        output["text"]
        for cell in done.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr"
    ]
    assert not stderr


def test_without_peers_the_notebook_says_so(tmp_path: Path) -> None:
    page = Page.open(None, str(tmp_path))
    said = page.draw(opponents.task_curves, "x", peers=None)
    assert "fog import" in said.data


def test_our_runs_are_drawn_in_frames_and_say_their_scale(peers: Path, tmp_path: Path) -> None:
    copy(tmp_path / "runs", "fog", probes=False, action_repeat=2)
    page = Page.open(str(tmp_path / "runs"), str(tmp_path))
    own = opponents.own_curves(page)
    assert set(own["series"]) == {"FoG (ours, scale 0.1)"}
    assert own["env_step"].max() == 2 * page.runs.evals["env_step"].max()
    known = load_peers(peers)
    _, table = opponents.suite_curves(page, peers=known, group="DMC-Easy")
    assert "FoG (ours, scale 0.1)" in set(table["series"])


def test_bars_over_the_best_run_are_brackets(peers: Path, tmp_path: Path) -> None:
    page = Page.open(None, str(tmp_path))
    known = load_peers(peers)
    _, table = opponent_scores.overview_bars(page, peers=known, normalisation="by_best_run")
    fog = table[(table["series"] == "FoG") & (table["source"] == "paper")].set_index("group")
    # The made-up opponents reach no more than the constants, so FoG's own best run may decide.
    assert (fog["low"] <= fog["score"]).all() and (fog["score"] <= fog["high"]).all()
    assert fog.loc["DMC-Hard", "score"] <= 1
    xqc = table[table["series"] == "xqc"].set_index("group")
    assert xqc.loc["Meta-World", "tasks"] == 0
    assert "shared (31 tasks)" in xqc.index
