"""From signs to a verdict, on recorded runs and known tables."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import diagnostics
from diagnostics.diagnosis import verdict
from diagnostics.diagnosis.calibration import Calibration
from diagnostics.diagnosis.signs import BY_NAME, SIGNS, measured
from diagnostics.runs.directories import RunFiles
from diagnostics.runs.load import Runs
from fog.cli import main
from tests.diagnostics import recorded
from tests.diagnostics.diagnosis.known import GOOD, calibration, table


@pytest.fixture(scope="module")
def runs() -> Runs:
    return diagnostics.load(recorded.FIXTURE)


@pytest.fixture
def known(tmp_path: Path) -> Path:
    path = tmp_path / "known.csv"
    table().to_csv(path, index=False)
    return path


def test_every_sign_is_measured_on_a_run_with_all_probes(runs: Runs) -> None:
    values = measured(runs)
    assert len(values) == 6
    missing = {name for name in values if values[name].isna().any()}
    assert missing == set()


def test_plasticity_is_the_mean_score_of_the_second_half(runs: Runs) -> None:
    run = runs.identity["run"].iloc[0]
    scores = runs.table("plasticity")
    scores = scores[(scores["run"] == run) & (scores["critic"] == "online")]
    steps = runs.runs.set_index("run").loc[run, "env_step"]
    late = scores[scores["env_step"] > steps / 2]
    assert 0 < len(late) < len(scores)
    found = BY_NAME["plasticity"].by_run(runs)[run]
    assert found == pytest.approx(late.groupby("env_step")["score"].mean().mean())


def _answer(values: dict[str, list[list[float]]]) -> verdict.Diagnosis:
    """The diagnosis of invented numbers: by sign, one list of measurements per seed."""
    late = {
        sign.name: pd.DataFrame(
            [
                (f"seed{seed}", step, value)
                for seed, numbers in enumerate(values.get(sign.name, []))
                for step, value in enumerate(numbers)
            ],
            columns=["run", "env_step", "value"],
        )
        for sign in SIGNS
    }
    seeds = max(len(numbers) for numbers in values.values())
    facts = pd.DataFrame(
        {
            "task": "t", "label": "sac", "run": [f"seed{seed}" for seed in range(seeds)],
            "status": "finished", "env_step": 100.0, "steps": 100.0,
        }
    )  # fmt: skip
    healthy = pd.DataFrame({"late": 5.0, "possible": 100.0}, index=facts["run"])
    return verdict._diagnosis(facts, RunFiles(Path("x")), late, SIGNS, calibration(), healthy)


@pytest.mark.parametrize(
    ("plasticity", "primacy", "expected"),
    [
        ([[0.6, 0.6]], [[-1.0, -1.0]], "no sign"),
        ([[0.1, 0.1]], [[-1.0, -1.0]], "some signs"),
        ([[0.1, 0.1]], [[1.0, 1.0]], "clear signs"),
        ([[0.1, 0.6]], [[-1.0, -1.0]], "some signs"),
        ([[0.1], [0.1], [0.1], [0.6]], [[1.0]] * 4, "clear signs"),
        ([[0.1], [0.6], [0.6], [0.1]], [[1.0]] * 4, "some signs"),
        ([[0.1], [0.6], [0.6], [0.6]], [[-1.0]] * 4, "no sign"),
        ([[0.1]], [], "clear signs"),
    ],
)
def test_the_verdict_follows_its_rule(
    plasticity: list[list[float]], primacy: list[list[float]], expected: str
) -> None:
    found = _answer({"plasticity": plasticity, "primacy_index": primacy})
    assert found.verdict == expected
    assert found.sentence.lower().startswith(expected)


def test_a_sign_that_does_not_separate_never_counts() -> None:
    found = _answer({"plasticity": [[0.6]], "dormant_activation": [[99.0]]})
    assert found.verdict == "no sign"
    assert [one.sign for one in found.of("not used")] == ["dormant_activation"]


def test_a_value_is_placed_among_agents_of_known_dose() -> None:
    sick = next(one for one in _answer({"plasticity": [[0.0]]}).findings if one.value is not None)
    assert (sick.beyond_unprimed, sick.nearest_dose) == (1.0, 100_000)
    well = next(one for one in _answer({"plasticity": [[0.9]]}).findings if one.value is not None)
    assert (well.beyond_unprimed, well.beyond_primed, well.nearest_dose) == (0.0, 0.0, 0)


def test_the_interval_is_students() -> None:
    found = _answer({"plasticity": [[0.1], [0.2], [0.3]]}).findings[0]
    half = 4.302652729911275 * 0.1 / np.sqrt(3)
    assert (found.over, found.numbers) == ("seeds", 3)
    assert [found.low, found.high] == pytest.approx([0.2 - half, 0.2 + half])


def test_the_python_function_answers_for_each_agent(known: Path) -> None:
    found = diagnostics.diagnose(recorded.FIXTURE, known)
    assert sorted(agent.label for agent in found) == ["fog", "sac", "sac-reset"]
    assert all(agent.seeds == 2 and agent.verdict != "cannot tell" for agent in found)


def test_the_command_prints_a_verdict_with_its_signs(
    known: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded.FIXTURE / recorded.TASK / "sac"
    assert main(["diagnose", str(path), "--calibration", str(known)]) == 0
    out = capsys.readouterr().out
    assert f"{recorded.TASK}, sac (2 seeds)" in out
    for name in GOOD:
        assert name in out
    assert "Cannot tell" in out  # what the sign cannot tell
    assert max(len(line) for line in out.splitlines() if "fog train" not in line) <= 110


def test_json_has_what_the_text_has(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["diagnose", str(recorded.FIXTURE), "--json", "--calibration", str(known)]
    assert main(options) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == 1
    assert {agent["label"] for agent in document["agents"]} == {"sac", "sac-reset", "fog"}
    fields = {field.name for field in dataclasses.fields(verdict.Diagnosis)}
    assert set(document["agents"][0]) == fields
    assert set(document["calibration"]["thresholds"]) == set(GOOD)


def test_a_run_without_probes_cannot_be_told(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.copy(tmp_path / "bare", probes=False)
    assert main(["diagnose", str(tmp_path / "bare"), "--calibration", str(known)]) == 0
    out = capsys.readouterr().out
    assert "Cannot tell: none of the probes that can tell was on (critic_loss, plasticity)." in out


def test_what_an_adapter_could_not_measure_is_repeated(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded.copy(tmp_path / "foreign")
    shutil.rmtree(run / "probes" / "plasticity")
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["unmeasured"] = {"plasticity": "its critic is a table"}
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert main(["diagnose", str(run), "--calibration", str(known)]) == 0
    out = capsys.readouterr().out
    assert "Not looked at: plasticity, because its critic is a table." in out


def test_half_a_run_is_judged_by_what_is_there(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded.copy(tmp_path / "half")
    manifest = json.loads((run / "manifest.json").read_text())
    steps = diagnostics.load(run).runs["steps"].iloc[0]
    manifest |= {"status": "interrupted", "env_step": int(steps // 2)}
    for name in ("evals.csv", "train.csv"):
        rows = pd.read_csv(run / name)
        rows[rows["env_step"] <= steps // 2].to_csv(run / name, index=False)
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert main(["diagnose", str(run), "--calibration", str(known)]) == 0
    assert "is interrupted at 50 % of its steps" in " ".join(capsys.readouterr().out.split())


def test_a_newer_schema_is_named_and_the_rest_is_used(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded.copy(tmp_path / "newer")
    recorded.mark(run / "probes" / "plasticity", "99")
    assert main(["diagnose", str(run), "--calibration", str(known)]) == 0
    out = capsys.readouterr().out
    assert "problem:" in out and "99" in out
    assert "train with `--probes plasticity`" in out


def test_a_folder_without_runs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["diagnose", str(tmp_path / "empty")]) == 2
    assert main(["diagnose", str(tmp_path / "nowhere")]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2 and "no runs in" in errors[0] and "does not exist" in errors[1]


def test_calibrate_writes_the_table_it_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Recorded runs stand in for the study: one of them is said to have been primed."""
    home = tmp_path / "runs"
    for variant in ("sac", "sac-reset", "fog"):
        for seed in (0, 1):
            recorded.copy(home, variant, seed)
    shutil.rmtree(home / recorded.TASK / "fog")
    recorded.copy(home / "primed", "sac", 0, priming_updates=20_000, critic_layer_norm="false")
    out = tmp_path / "mine.csv"
    options = ["calibrate", "--runs", str(home), "--task", recorded.TASK, "--out", str(out)]
    assert main(options) == 0
    said = capsys.readouterr().out
    assert f"{recorded.TASK} (calibration): 1 primed, 4 unprimed" in said
    assert list(Calibration.read(out).values["group"]).count("primed") == 1
    assert main([*options[:4], "nope", *options[5:]]) == 2
    assert "no finished run of 'nope'" in capsys.readouterr().err
