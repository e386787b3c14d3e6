"""The committed miniature: it is complete, and the documents say what its runs say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import diagnostics
from diagnostics.runs.load import Runs
from diagnostics.studies.study import paper_claims
from diagnostics.studies.verdicts import judge, verdict
from fog.cli import main

ROOT = Path(__file__).parents[1]
MINIATURE = ROOT / "results" / "miniature"
NUMBER = re.compile(r"[-+]?\d[\d.]*(?:e[-+]\d+)?")
PICTURE = re.compile(r"!\[[^]]*\]\(([^)]+)\)")


@pytest.fixture(scope="module")
def runs() -> Runs:
    return diagnostics.load(MINIATURE)


@pytest.fixture(scope="module")
def table(runs: Runs) -> pd.DataFrame:
    return judge(runs, paper_claims())


@pytest.mark.parametrize("plan", sorted(MINIATURE.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_run_of_a_plan_is_there_and_has_ended(runs: Runs, plan: Path) -> None:
    wanted = yaml.safe_load(plan.read_text())
    facts = runs.runs[runs.runs["variant"].isin(wanted["variants"])]
    facts = facts[facts["task"].isin(wanted["tasks"])]
    assert facts.groupby("variant")["seed"].apply(sorted).to_dict() == {
        name: [0, 1, 2] for name in wanted["variants"]
    }
    assert set(facts["status"]) <= {"finished", "diverged"}
    assert set(facts["scale"]) == {wanted["scale"]}
    for name in ("width", "batch_size", "replay_ratio", "window_steps", "eval_every"):
        if name in wanted["settings"]:
            assert set(facts[name]) == {wanted["settings"][name]}, name


def test_every_table_can_be_read(runs: Runs) -> None:
    assert len(runs.tables) >= 4
    for name in runs.tables:
        assert len(runs.table(name))
    # Problems are found when tables are read. The first edition's gradient scores are not read.
    assert len(runs.events) and len(runs.train)
    assert set(runs.problems["problem"].str.split(":").str[0]) == {
        "probes/dormancy has schema version 1"
    }
    assert len(runs.problems) == len(runs)
    assert runs.dormancy["gradient"].isna().all() and runs.dormancy["activation"].notna().all()


def test_it_is_small_and_says_where_it_comes_from(runs: Runs) -> None:
    files = [path for path in MINIATURE.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 15e6
    for run in runs.files:
        assert run.manifest["versions"]["torch"] and run.manifest["hardware"]["cpu"]
        assert len(run.manifest["git_commit"]) == 40 and "train" in run.manifest["command"]


def test_resets_expansions_and_windows_happen_several_times(runs: Runs) -> None:
    grown = runs.select(variant=["expanded-sac", "fog"])
    counts = grown.events.groupby(["run", "event"]).size().unstack()
    assert (counts["reset"] >= 3).all() and (counts["expansion"] >= 3).all()
    assert (grown.critic_loss.groupby("run")["env_step"].nunique() >= 10).all()


def test_the_results_page_has_the_verdicts_of_the_runs(table: pd.DataFrame) -> None:
    page = (ROOT / "docs" / "results.md").read_text()
    readme = (ROOT / "README.md").read_text()
    for claim in paper_claims():
        word = verdict(table[table["claim"] == claim.name])
        assert f"## {claim.name[0].upper()}{claim.name[1:]}: {word}\n" in page, claim.name
        assert re.search(rf"\| {re.escape(claim.name)}[^|]*\| {word} \|", readme, re.I), claim.name


def test_the_table_of_claims_is_that_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--runs", str(MINIATURE), "--markdown"]) == 0
    kept, now = (ROOT / "results" / "claims.md").read_text(), capsys.readouterr().out
    assert NUMBER.sub("#", kept) == NUMBER.sub("#", now)
    # Another processor may round clusters of features otherwise.
    numbers = [np.array([float(word) for word in NUMBER.findall(text)]) for text in (kept, now)]
    np.testing.assert_allclose(*numbers, rtol=0.02, atol=0.01)


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_pictures_of_runs_were_drawn_from_committed_runs(page: str) -> None:
    home = (ROOT / page).parent
    pictures = [home / path for path in PICTURE.findall((ROOT / page).read_text())]
    drawn = [path for path in pictures if "miniature" in path.parts]
    assert len(drawn) >= 4
    for path in drawn:
        provenance = json.loads(path.with_suffix(".json").read_text())
        used = provenance["parameters"]["runs"]
        assert len(used) >= 3
        for run in used:
            assert not Path(run).is_absolute()
            assert (ROOT / run).is_relative_to(MINIATURE)
            assert (ROOT / run / "config.yaml").is_file(), (path, run)
