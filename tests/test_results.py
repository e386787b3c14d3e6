"""The committed runs: they are complete, and the documents say what they show."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest

import diagnostics
from diagnostics.runs.load import Runs
from diagnostics.studies.claims import Claim
from diagnostics.studies.study import claims_judged_together, paper_claims
from diagnostics.studies.verdicts import judge, verdict
from fog.cli import main
from fog.sweep import planfile

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PLANS = {
    "priming": ("cheetah", "halfcheetah", "early_reset", "early_reset_halfcheetah"),
    "motivating": ("cheetah_primed", "cartpole"),
    "ablations": ("cartpole",),
    "paper_size": ("halfcheetah", "ant"),
}
MOST_BYTES = 25e6
"""Everybody who clones the project gets these tables."""

SAME = ("task", "variant", "seed", "priming_updates", "critic_layer_norm", "steps", "width")
SAME += ("batch_size", "replay_ratio", "window_steps", "eval_every")
"""Settings by which a run is one of its plan's."""

NUMBER = re.compile(r"[-+]?\d[\d.]*(?:e[-+]\d+)?")
PICTURE = re.compile(r"!\[[^]]*\]\(([^)]+)\)")
PAGES = ("README.md", "docs/results.md")


@cache
def runs_of(home: Path) -> Runs:
    return diagnostics.load(home)


@cache
def judged(group: str) -> pd.DataFrame:
    """What `fog claims --runs results` judges together."""
    return judge(runs_of(RESULTS), claims_judged_together()[group])


@pytest.mark.parametrize("study", PLANS)
def test_every_run_of_the_plans_is_there_and_has_ended(study: str) -> None:
    jobs = [
        job.config.flat()
        for name in PLANS[study]
        for job in planfile.read(RESULTS / study / f"{name}.yaml").jobs({})
    ]
    planned = Counter(tuple(job[name] for name in SAME) for job in jobs)
    facts = runs_of(RESULTS / study / "runs").runs
    assert set(facts["status"]) <= {"finished", "diverged"}
    assert Counter(facts[list(SAME)].itertuples(index=False, name=None)) == planned


def test_it_says_where_it_comes_from() -> None:
    for run in runs_of(RESULTS).files:
        assert run.manifest["versions"]["torch"] and run.manifest["hardware"]["cpu"]
        assert len(run.manifest["git_commit"]) == 40 and "train" in run.manifest["command"]


def test_every_table_can_be_read() -> None:
    runs = runs_of(RESULTS)
    for name in runs.tables:
        assert len(runs.table(name))
    assert len(runs.evals) and len(runs.events) and runs.problems.empty


def test_they_are_small_enough_to_be_kept_in_the_repository() -> None:
    tables = [path for kind in ("csv", "parquet") for path in RESULTS.rglob(f"*.{kind}")]
    assert sum(path.stat().st_size for path in tables) < MOST_BYTES


def cell(rows: pd.DataFrame, by: Literal["verdict", "holm"] = "verdict") -> str:
    """A claim in one table: the verdict, and how many contrasts speak for it."""
    rows = rows[rows["counts"].astype(bool)]
    words = list(rows[by])
    if words.count("no data") == len(words):
        return ""
    tally = {
        "for": words.count("reproduced"),
        "against": words.count("not reproduced"),
        "open": words.count("inconclusive"),
        "missing": words.count("no data"),
    }
    return f"{verdict(rows, by)}: " + ", ".join(f"{n} {kind}" for kind, n in tally.items() if n)


def paper_row(claim: Claim) -> str:
    """What the pages say of a claim of the paper: unprimed, the same by Holm, and primed."""
    unprimed = judged("the paper")
    unprimed = unprimed[unprimed["claim"] == claim.name]
    primed = judged("the motivating example, primed")
    cells = [
        cell(unprimed),
        cell(unprimed, "holm"),
        cell(primed[primed["claim"] == f"{claim.name} (primed, no LayerNorm)"]),
        cell(primed[primed["claim"] == f"{claim.name} (primed, LayerNorm)"]),
    ]
    return f"| {claim.name} | " + " | ".join(cells) + " |"


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_have_the_verdicts_of_the_runs(page: str) -> None:
    text = re.sub(r" +\|", " |", (ROOT / page).read_text())
    for claim in paper_claims():
        assert re.sub(r" +\|", " |", paper_row(claim)) in text


def test_the_page_has_the_verdicts_on_our_own_claims() -> None:
    page = (ROOT / "docs" / "results.md").read_text()
    table = judged("priming")
    for name in dict.fromkeys(table["claim"]):
        assert f"| {name} | {verdict(table[table['claim'] == name])} |" in page


def test_the_page_says_what_would_decide_the_rest() -> None:
    page = (ROOT / "docs" / "results.md").read_text()
    table = judged("the paper")
    rows = table[table["counts"] & (table["verdict"] == "inconclusive")]
    assert len(rows) > 3
    for row in rows.itertuples():
        needed = ">1000" if np.isnan(row.needed) else f"{row.needed:.0f}"
        assert f"| {row.sides} | {row.what} | {row.seeds} | {needed} |" in page


def test_the_tables_of_claims_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--runs", str(RESULTS), "--markdown"]) == 0
    kept, now = (RESULTS / "claims.md").read_text(), capsys.readouterr().out
    assert NUMBER.sub("#", kept) == NUMBER.sub("#", now)
    # Another processor may round clusters of features otherwise.
    numbers = [np.array([float(word) for word in NUMBER.findall(text)]) for text in (kept, now)]
    np.testing.assert_allclose(*numbers, rtol=0.02, atol=0.01)


@pytest.mark.parametrize("page", PAGES)
def test_pictures_of_runs_were_drawn_from_committed_runs(page: str) -> None:
    home = (ROOT / page).parent
    pictures = [home / path for path in PICTURE.findall((ROOT / page).read_text())]
    drawn = [path for path in pictures if "results" in path.parts]
    assert len(drawn) >= 3
    for path in drawn:
        provenance = json.loads(path.with_suffix(".json").read_text())
        used = provenance["parameters"]["runs"]
        assert len(used) >= 3
        for run in used:
            assert not Path(run).is_absolute()
            assert (ROOT / run).is_relative_to(RESULTS)
            assert (ROOT / run / "config.yaml").is_file(), (path, run)
