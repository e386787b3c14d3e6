"""What to try: what helped known agents comes first, and every printed command can be run."""

from __future__ import annotations

import shlex
from pathlib import Path

import pandas as pd
import pytest

import fog
from diagnostics.diagnosis.advice import advise
from diagnostics.runs.directories import RunFiles
from fog.cli import main
from fog.records.run_directory import RunDirectory
from fog.settings.variants import VARIANTS
from tests.diagnostics.diagnosis.known import calibration

CONFIG = {"sampler": "uniform", "replay_ratio": 4.0, "reset_steps": [], "critic_layer_norm": True}


def facts(run: Path | str = "runs/a", steps: float = 20_000) -> pd.Series:
    return pd.Series({"run": str(run), "steps": float(steps)})


def flags(config: dict[str, object], cure: str, **settings: float) -> str:
    (found,) = (
        one.command
        for one in advise(facts(**settings), config, calibration())
        if one.command.endswith(f"--out runs/{cure}")
    )
    return found.partition("config.yaml ")[2].partition(" --out")[0]


def test_it_names_what_the_agent_lacks_and_what_helped_first() -> None:
    found = advise(facts(), {**CONFIG, "sampler": "decay"}, calibration())
    assert [one.command.split(" --out ")[1] for one in found] == [
        "runs/one_reset", "runs/growth", "runs/lower_ratio"
    ]  # fmt: skip
    assert "--reset-steps 2000 " in found[0].command
    assert found[0].evidence == (
        "it helped primed SAC on easy (late return 100 with it, 5 without, 100 unprimed)"
    )
    assert "--replay-ratio 2 " in found[2].command
    assert all(not one.command for one in advise(facts(), {}, calibration()))


def test_what_did_not_help_comes_last_and_says_so() -> None:
    known = calibration()
    resets = (known.values["cure"] == "one_reset") & ~known.values["layer_norm"]
    known.values.loc[resets, "late_return"] = 4.0
    found = advise(facts(), CONFIG, known)
    assert found[-1].command.endswith("runs/one_reset")
    assert found[-1].evidence.startswith("it did not help primed SAC")


def test_a_reset_that_never_happens_is_no_cure_in_use() -> None:
    late = {**CONFIG, "reset_steps": [15_000, 50_000]}
    assert flags(late, "one_reset", steps=400) == "--reset-steps 40"
    assert not [one for one in advise(facts(), late, calibration()) if "resets" in one.command]


def test_decay_forgets_within_a_tenth_of_the_run_and_growth_waits_for_the_priming() -> None:
    assert flags(CONFIG, "decay") == "--sampler decay --epsilon 0.0005"
    primed = {**CONFIG, "priming_updates": 100_000}
    assert flags(primed, "growth").startswith("--expansion-updates 110800 140800 ")


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_command_can_be_run(
    variant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "a folder"
    config = fog.resolve("gym:Pendulum-v1", variant, steps=200_000, out=str(home))
    directory = RunDirectory.create(config)
    directory.unlock()
    run = RunFiles.open(directory.path)
    for one in advise(facts(directory.path, 200_000), run.config, calibration()):
        command = shlex.split(one.command)
        assert main([*command[1:], "--dry-run"]) == 0, capsys.readouterr().err
