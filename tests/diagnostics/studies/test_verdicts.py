"""From numbers of runs to verdicts: intervals against scipy, and the rules by example."""

from __future__ import annotations

import json
import math
import re
import shutil
import warnings
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import diagnostics
from diagnostics.errors import AnalysisError
from diagnostics.metrics.holm import holm
from diagnostics.metrics.student import Interval, compared, difference
from diagnostics.studies import per_run
from diagnostics.studies.claims import Claim, late_returns, variant_of, variants_of
from diagnostics.studies.motivating_primed import STUDY as MOTIVATING_PRIMED
from diagnostics.studies.priming import HIGHEST
from diagnostics.studies.priming import STUDY as PRIMING
from diagnostics.studies.study import paper_claims, studies
from diagnostics.studies.verdicts import judge, judged, verdict
from fog.cli import main
from fog.settings import variants
from tests.diagnostics.recorded import FIXTURE, TASK, copy


def test_one_sample_is_students_interval() -> None:
    values = np.array([1.0, 2.0, 4.5])
    found = difference(values)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert found == pytest.approx((2.5, expected.low, expected.high))


def test_two_samples_are_welchs_interval() -> None:
    values, others = np.array([1.0, 2.0, 4.5]), np.array([10.0, 30.0])
    found = difference(values, others)
    expected = stats.ttest_ind(values, others, equal_var=False).confidence_interval(0.95)
    assert found == pytest.approx((-17.5, expected.low, expected.high))


def test_one_seed_says_nothing_about_the_width() -> None:
    found = difference(np.array([3.0]), np.array([1.0, 2.0]))
    assert found.estimate == 1.5
    assert math.isnan(found.low) and math.isnan(found.high)
    assert judged(found) == "inconclusive"


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(0.1, 2, "reproduced"), (-2, -0.1, "not reproduced"), (-1, 1, "inconclusive")],
)
def test_a_contrast_is_judged_by_its_whole_interval(low: float, high: float, word: str) -> None:
    assert judged(Interval((low + high) / 2, low, high)) == word


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ("reproduced, reproduced", "reproduced"),
        ("reproduced, inconclusive", "inconclusive"),
        ("reproduced, not reproduced", "mixed"),
        ("reproduced, not reproduced, inconclusive", "inconclusive"),
        ("reproduced, no data", "inconclusive"),
        ("inconclusive, not reproduced", "not reproduced"),
        ("inconclusive, inconclusive", "inconclusive"),
        ("no data, no data", "no data"),
    ],
)
def test_a_claim_needs_all_of_its_contrasts(words: str, word: str) -> None:
    rows = pd.DataFrame({"verdict": words.split(", "), "counts": True})
    assert verdict(rows) == word
    # What does not count changes nothing.
    aside = pd.DataFrame({"verdict": ["not reproduced", "reproduced"], "counts": False})
    assert verdict(pd.concat([rows, aside])) == word


@pytest.mark.parametrize(
    ("words", "together", "word"),
    [
        ("reproduced, reproduced", "reproduced, inconclusive", "inconclusive"),
        ("reproduced, not reproduced", "inconclusive, not reproduced", "inconclusive"),
        ("reproduced, not reproduced, inconclusive", "inconclusive, not reproduced, inconclusive",
         "inconclusive"),
        ("inconclusive, not reproduced", "inconclusive, not reproduced", "not reproduced"),
        ("no data", "no data", "no data"),
    ],
)  # fmt: skip
def test_judged_together_a_claim_can_only_lose_its_verdict(
    words: str, together: str, word: str
) -> None:
    columns = {"verdict": words.split(", "), "holm": together.split(", "), "counts": True}
    assert verdict(pd.DataFrame(columns), "holm") == word


def test_claims_name_variants_that_exist() -> None:
    assert set(variants.VARIANTS) >= variants_of(paper_claims())
    for study in studies():
        assert set(variants.VARIANTS) >= set(map(variant_of, variants_of(study.claims)))
    assert {"sac", "fog", "fog-fixed4"} <= variants_of(paper_claims())
    assert len({claim.name for claim in paper_claims()}) == len(paper_claims())


def test_evidence_is_the_difference_of_the_variants_numbers() -> None:
    runs = diagnostics.load(FIXTURE)
    table = judge(runs, paper_claims())
    rows = table[(table["sides"] == "SAC against SAC with reset") & table["counts"]]
    (row,) = rows[rows["what"].str.startswith("loss of a window")].to_dict("records")
    logs = per_run.late_loss(runs)
    of = {
        name: logs[runs.identity["run"][runs.identity["variant"] == name]].to_numpy()
        for name in ("sac", "sac-reset")
    }
    expected = stats.ttest_ind(of["sac"], of["sac-reset"], equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert row["estimate"] == pytest.approx(np.exp(of["sac"].mean() - of["sac-reset"].mean()))
    assert row["low"] == pytest.approx(np.exp(interval.low))
    assert row["high"] == pytest.approx(np.exp(interval.high))
    assert (row["task"], row["seeds"]) == (TASK, 2)


def test_uniform_replay_draws_the_old_more_in_the_recorded_runs() -> None:
    table = judge(diagnostics.load(FIXTURE), paper_claims())
    rows = table[table["claim"] == "older transitions are drawn more"]
    words = dict(zip(rows["sides"], rows["verdict"], strict=True))
    assert words["SAC"] == words["SAC with reset"] == "reproduced"
    assert words["SAC with reset against Balanced SAC"] == "no data"
    assert verdict(rows) == "inconclusive"


def status(run: Path, word: str) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"status": word}))


def row_of(table: pd.DataFrame, claim: str, sides: str, task: str = TASK) -> dict[Hashable, Any]:
    rows = table[(table["claim"] == claim) & (table["sides"] == sides) & (table["task"] == task)]
    return rows.to_dict("records")[0]


DRAWN = "older transitions are drawn more"


def test_runs_that_have_not_ended_are_left_out(tmp_path: Path) -> None:
    for seed in (0, 1):
        run = copy(tmp_path, "sac", seed)
    status(run, "interrupted")
    row = row_of(judge(diagnostics.load(tmp_path), paper_claims()), DRAWN, "SAC")
    assert (row["seeds"], row["ended"], row["verdict"]) == (1, 1, "inconclusive")


def test_a_run_that_diverged_leaves_a_gap_that_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in (0, 1):
        shutil.copytree(FIXTURE / TASK / "sac" / f"seed{seed}", tmp_path / TASK / "sac" / str(seed))
    run = copy(tmp_path, "sac", 2)
    complete = row_of(judge(diagnostics.load(tmp_path), paper_claims()), DRAWN, "SAC")
    assert (complete["seeds"], complete["ended"], complete["verdict"]) == (3, 3, "reproduced")
    status(run, "diverged")
    row = row_of(judge(diagnostics.load(tmp_path), paper_claims()), DRAWN, "SAC")
    assert (row["seeds"], row["ended"], row["verdict"]) == (2, 3, "inconclusive")
    assert row["low"] > 1
    assert main(["claims", "--runs", str(tmp_path)]) == 0
    assert "2 of 3 seeds" in capsys.readouterr().out


@pytest.mark.parametrize("lost", ["manifest", "infinite"])
def test_a_run_without_a_number_is_a_gap(tmp_path: Path, lost: str) -> None:
    home = copy(tmp_path, "sac", 0), copy(tmp_path, "sac", 1)
    if lost == "manifest":
        (home[0] / "manifest.json").unlink()
    else:
        evals = pd.read_csv(home[0] / "evals.csv").astype({"return": float})
        evals.loc[evals.index[-1], "return"] = np.inf
        evals.to_csv(home[0] / "evals.csv", index=False)
    copy(tmp_path, "sac-reset", 0), copy(tmp_path, "sac-reset", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = judge(diagnostics.load(tmp_path), paper_claims())
    row = row_of(table, "returns of the motivating example", "SAC with reset against SAC")
    assert (row["seeds"], row["ended"], row["verdict"]) == (1, 2, "inconclusive")


def test_a_variant_missing_on_one_task_is_a_gap_too(tmp_path: Path) -> None:
    for variant in ("sac", "sac-reset"):
        for seed in (0, 1):
            copy(tmp_path, variant, seed)
    copy(tmp_path, "sac", 0, task="walker-run")
    table = judge(diagnostics.load(tmp_path), paper_claims())
    claim, sides = "plain SAC fails to fit its data", "SAC against SAC with reset"
    assert row_of(table, claim, sides)["seeds"] == 2
    assert row_of(table, claim, sides, "walker-run")["verdict"] == "no data"


def test_a_task_that_the_plan_leaves_out_is_no_gap(tmp_path: Path) -> None:
    for seed in (0, 1):
        copy(tmp_path, "sac", seed)
    copy(tmp_path, "sac-reset", 0)
    copy(tmp_path, "sac", 0, task="walker-run")
    for not_on, tasks in (((), [TASK, "walker-run"]), (("walker-run",), [TASK])):
        claim = Claim("returns", "", late_returns("sac > sac-reset", not_on=not_on))
        assert list(judge(diagnostics.load(tmp_path), [claim])["task"]) == tasks


def test_cuer_of_the_other_reading_is_never_counted_as_cuer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs older than the setting owed draws for a whole environment step."""
    claim, sides = "returns of FoG's ablations", "FoG against FoG, CUER"
    old, new = tmp_path / "old", tmp_path / "new"
    for seed in (0, 1):
        for out, quota in ((old, None), (new, "batch")):
            copy(out, "fog", seed)
            run = copy(out / "aside", "fog", seed, probes=False, sampler="cuer")
            text = (run / "config.yaml").read_text().replace("variant: fog", "variant: fog-cuer")
            text = re.sub(r"(?m)^  cuer_quota: .*\n", "", text)
            if quota is not None:
                text = text.replace("  sampler:", f"  cuer_quota: {quota}\n  sampler:")
            (run / "config.yaml").write_text(text)
    runs = diagnostics.load(old)
    assert set(runs.identity["label"]) == {"fog", "fog-cuer (cuer quota step)"}
    row = row_of(judge(runs, paper_claims()), claim, sides)
    assert (row["seeds"], row["ended"], row["verdict"]) == (0, 0, "no data")
    assert main(["claims", "--runs", str(old)]) == 0
    assert "left out: 2 runs of CUER with cuer_quota step" in capsys.readouterr().err

    runs = diagnostics.load(new)
    assert set(runs.identity["label"]) == {"fog", "fog-cuer"}
    assert row_of(judge(runs, paper_claims()), claim, sides)["seeds"] == 2
    assert main(["claims", "--runs", str(new)]) == 0
    assert "left out" not in capsys.readouterr().err
    # Side by side they have different labels, and the old ones still do not count.
    runs = diagnostics.load([old / "aside", new])
    assert {"fog-cuer (cuer quota batch)", "fog-cuer (cuer quota step)"} <= set(
        runs.identity["label"]
    )
    assert row_of(judge(runs, paper_claims()), claim, sides)["seeds"] == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"seed": 1, "width": 17}, "runs on cartpole-swingup cannot be compared: width 8, 17"),
        ({"seed": 1, "eval_every": 77}, "sac on cartpole-swingup has runs with different settings"),
        ({"seed": 0}, "sac on cartpole-swingup appears twice with seed 0"),
    ],
)
def test_what_must_not_be_mixed(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    copy(tmp_path / "one", "sac", 0)
    copy(tmp_path / "two", "sac", **settings)
    with pytest.raises(AnalysisError, match=words):
        judge(diagnostics.load(tmp_path), paper_claims())


def test_a_run_with_a_config_that_cannot_be_read_stops_nothing_and_decides_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(FIXTURE, tmp_path / "runs")
    bad = next((tmp_path / "runs").rglob("sac/seed0"))
    (bad / "config.yaml").write_bytes(b"task: caf\xe9\n")
    assert main(["claims", "--runs", str(tmp_path / "runs")]) == 0
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{bad}: config.yaml cannot be read" in said
    row = row_of(judge(diagnostics.load(tmp_path), paper_claims()), DRAWN, "SAC")
    assert (row["seeds"], row["ended"], row["verdict"]) == (1, 2, "inconclusive")


def test_equal_numbers_say_nothing_about_the_width(tmp_path: Path) -> None:
    for seed in (0, 1):
        copy(tmp_path, "sac", seed)
    # Copies of one run: no spread at all.
    row = row_of(judge(diagnostics.load(tmp_path), paper_claims()), DRAWN, "SAC")
    assert row["seeds"] == 2 and math.isnan(row["low"])
    assert row["verdict"] == "inconclusive"


def test_the_command_in_its_three_forms(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--runs", str(FIXTURE)]) == 0
    text = capsys.readouterr().out
    assert "older transitions are drawn more: INCONCLUSIVE (2 of 5 rows for, 0 against)" in text
    assert max(map(len, text.splitlines())) <= 110
    told = " ".join(text.split())
    assert "NO DATA" not in text and "clearer clusters" in told.partition("No runs for: ")[2]
    table = judge(diagnostics.load(FIXTURE), paper_claims())
    together = int((table["counts"] & table["p"].notna()).sum())
    verdicts = [verdict(rows) for _, rows in table.groupby("claim")]
    counted = f"{verdicts.count('inconclusive')} inconclusive, {verdicts.count('no data')} no data"
    assert f"The paper: {counted}. By Holm, {together} contrasts together: " in told
    assert main(["claims", "--runs", str(FIXTURE), "--markdown"]) == 0
    assert "### clearer clusters: **no data** (0 of 2 rows for" in capsys.readouterr().out
    assert main(["claims", "--runs", str(FIXTURE), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [entry["claim"] for entry in document] == [claim.name for claim in paper_claims()]
    assert document[0]["evidence"][2]["estimate"] is None


def test_an_open_contrast_says_what_would_decide_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    returns = {"sac": (100.0, 110.0, 120.0), "sac-reset": (112.0, 114.0, 131.0)}
    each = []
    for variant, values in returns.items():
        for seed, value in enumerate(values):
            run = copy(tmp_path, variant, seed, probes=False)
            evals = pd.read_csv(run / "evals.csv")
            evals.assign(**{"return": value}).to_csv(run / "evals.csv", index=False)
        train = pd.read_csv(run / "train.csv")
        updates = np.diff(train["updates"], prepend=0)
        usable = (train["updates_per_second"] > 0) & (updates > 0)
        each.append((updates / train["updates_per_second"])[usable].sum() / 3600)
    # From the textbook, with Welch's degrees of freedom for as many seeds of both.
    variances = np.array([np.var(values, ddof=1) for values in returns.values()])

    def power(seeds: int) -> float:
        degrees = (seeds - 1) * variances.sum() ** 2 / (variances**2).sum()
        error = np.sqrt(variances.sum() / seeds)
        return float(stats.nct.sf(stats.t.ppf(0.975, degrees), degrees, 9.0 / error))

    wanted = next(seeds for seeds in range(2, 100) if power(seeds) >= 0.8)
    hours = (wanted - 3) * sum(each)

    claim, sides = "returns of the motivating example", "SAC with reset against SAC"
    row = row_of(judge(diagnostics.load(tmp_path), paper_claims()), claim, sides)
    assert (row["estimate"], row["verdict"]) == (pytest.approx(9.0), "inconclusive")
    assert row["needed"] == wanted > 3
    assert row["hours"] == pytest.approx(hours)
    assert main(["claims", "--runs", str(tmp_path)]) == 0
    assert f"3 seeds  inconclusive: {wanted} seeds, {60 * hours:.0f} min" in capsys.readouterr().out


def test_the_figure_holds_every_contrast_that_counts_and_has_an_interval(tmp_path: Path) -> None:
    table = judge(diagnostics.load(FIXTURE), paper_claims())
    assert main(["claims", "--runs", str(FIXTURE), "--figures", str(tmp_path)]) == 0
    assert (tmp_path / "claims_paper.png").stat().st_size > 10_000
    drawn = pd.read_csv(tmp_path / "claims_paper.csv")
    assert len(drawn) == (table["counts"] & table["low"].notna()).sum() > 5
    # Beyond one half-width of the interval on either side is where zero is left out.
    sign = np.sign(drawn["distance"]).where(drawn["distance"].abs() > 1, 0)
    words = sign.map({1: "reproduced", -1: "not reproduced", 0: "inconclusive"})
    assert list(words) == list(drawn["verdict"])


def test_one_seed_is_told_but_not_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy(tmp_path / "runs", "sac", 0)
    arguments = ["claims", "--runs", str(tmp_path / "runs"), "--figures", str(tmp_path / "out")]
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert "[one seed]" in told.out and "an interval needs two seeds" in told.err
    assert not (tmp_path / "out").exists()


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, words in ((tmp_path / "no", "does not exist"), (tmp_path, "no runs in")):
        assert main(["claims", "--runs", str(folder)]) == 2
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1
    run = copy(tmp_path, "sac", 0, probes=False)
    assert main(["claims", "--runs", str(tmp_path)]) == 2
    assert "train the variants of" in capsys.readouterr().err
    assert main(["claims", "--runs", str(tmp_path), "--figures", str(run / "evals.csv")]) == 2
    assert "is a file" in capsys.readouterr().err
    status(run, "running")
    assert main(["claims", "--runs", str(tmp_path)]) == 2
    assert "none of the 1 runs" in capsys.readouterr().err


def test_p_is_that_of_scipys_tests() -> None:
    values, others = np.array([1.0, 2.0, 4.5]), np.array([10.0, 30.0, 11.0])
    assert compared(values)[1] == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    welch = stats.ttest_ind(values, others, equal_var=False).pvalue
    assert compared(values, others)[1] == pytest.approx(welch)


def test_contrasts_that_are_sure_alone_may_not_be_together(tmp_path: Path) -> None:
    """Many weak contrasts: each interval leaves zero out, together they do not."""
    table = judge(diagnostics.load(FIXTURE), paper_claims())
    counted = table[table["counts"] & table["p"].notna()]
    sure = counted["verdict"] != "inconclusive"
    adjusted = holm(counted["p"].to_numpy(float))
    assert list(counted["holm"] != "inconclusive") == list(sure & (adjusted < 0.05))
    assert (counted["p"][sure] < 0.05).all() and (counted["p"][~sure] >= 0.05).all()


def test_primed_runs_are_variants_of_their_own(tmp_path: Path) -> None:
    for seed in (0, 1):
        for variant, dose, gain in (("plain-sac", 0, 50), (f"plain-sac@{HIGHEST}", HIGHEST, 0)):
            home = copy(tmp_path / str(dose), "sac", seed)
            config = home / "config.yaml"
            text = config.read_text().replace("variant: sac", "variant: plain-sac")
            text = text.replace("priming_updates: 0", f"priming_updates: {dose}")
            config.write_text(text)
            evals = pd.read_csv(home / "evals.csv")
            evals["return"] = gain + seed
            evals.to_csv(home / "evals.csv", index=False)
            assert variant in variants_of(PRIMING.claims)
    table = judge(diagnostics.load(tmp_path), PRIMING.claims)
    row = table[table["sides"] == f"plain SAC against plain SAC, primed {HIGHEST:,}"].iloc[0]
    assert (row["estimate"], row["seeds"], row["verdict"]) == (50.0, 2, "reproduced")


def test_primed_motivating_runs_are_judged_with_layer_norm_and_without(tmp_path: Path) -> None:
    """The same variants on the same task, told apart by their critics."""
    gains = {("sac", True): 5, ("sac-reset", True): 1, ("sac", False): 2, ("sac-reset", False): 30}
    for (variant, norm), gain in gains.items():
        for seed in (0, 1):
            settings = {"critic_layer_norm": str(norm).lower(), "priming_updates": HIGHEST}
            home = copy(tmp_path / str(norm), variant, seed, **settings)
            evals = pd.read_csv(home / "evals.csv")
            evals["return"] = gain + seed
            evals.to_csv(home / "evals.csv", index=False)
    runs = diagnostics.load(tmp_path)
    table = judge(runs, MOTIVATING_PRIMED.claims)
    returns = table[table["claim"].str.startswith("returns") & (table["seeds"] > 0)]
    dose = f"primed {HIGHEST:,}"
    assert dict(zip(returns["sides"], returns["estimate"], strict=True)) == {
        f"SAC with reset against SAC ({dose})": -4.0,
        f"SAC with reset against SAC (no LayerNorm, {dose})": 28.0,
    }
    # None of them is a run of the paper's own claims, nor of the priming study.
    assert not (judge(runs, paper_claims())["seeds"] > 0).any()
    assert not (judge(runs, PRIMING.claims)["seeds"] > 0).any()
