"""`fog sweep` as a user types it: what it says before it starts, and about mistakes."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import fog.cost
from fog.cli import main
from fog.cost import Estimate
from fog.records.run_directory import RunDirectory
from fog.settings.variants import resolve

GRID = ["sweep", "--tasks", "cartpole-swingup", "--variants", "sac", "fog", "--seeds", "0-2"]


def test_help_needs_no_torch() -> None:
    code = (
        "import sys; from fog.cli import main; main(['sweep', '--help']); "
        "sys.exit('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "--plan FILE" in result.stdout
    assert "Every setting of `fog train` is a flag here too" in result.stdout


MISTAKES = [
    ("sweep", "nothing to run: add --tasks"),
    ("sweep --task Ant-v4", "did you mean '--tasks'"),
    ("sweep --tasks Ant-v5", "did you mean 'Ant-v4'"),
    ("sweep --tasks suite:dm", "unknown suite 'dm': did you mean 'dmc'"),
    ("sweep --tasks Ant-v4 --variants sak", "did you mean 'sac'"),
    ("sweep --tasks Ant-v4 --seeds 4-0", "write the smaller one first"),
    ("sweep --tasks Ant-v4 --seeds 0-10000", "0-10000 is a range of more than 10000 seeds"),
    ("sweep --tasks Ant-v4 --jobs 0", "--jobs: at least one run at a time, got 0"),
    ("sweep --tasks Ant-v4 --widht 3", "did you mean '--width'"),
    ("sweep --tasks Ant-v4 --width 0", "width: must be >= 1 and <= 65536, got 0"),
    ("sweep --tasks Ant-v4 --probes dormncy", "did you mean 'dormancy'"),
    ("sweep --tasks Ant-v4 --engine lokal", "unknown engine 'lokal': did you mean 'local'"),
    ("sweep --plan nowhere.yaml", "cannot read plan nowhere.yaml: No such file"),
    ("sweep --plan motivatin", "unknown plan 'motivatin': did you mean 'motivating_example'"),
    ("sweep --plan motivating_example --tasks Ant-v4", "Ant-v4 is not in"),
    ("sweep --tasks Ant-v4 --out /dev/null/runs", "cannot write into /dev/null/runs: Not a dir"),
]


@pytest.mark.parametrize(("line", "said"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_is_one_line_and_exit_code_2(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(line)) == 2
    output = capsys.readouterr()
    assert said in output.err
    assert output.err.count("\n") == 1
    assert output.out == ""


def test_an_earlier_run_with_other_settings_is_named_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path)
    earlier = resolve("cartpole-swingup", "sac", seed=1, width=32, out=out)
    directory = RunDirectory.create(earlier)
    directory.update_manifest(status="finished")
    directory.unlock()
    assert main([*GRID, "--out", out]) == 2
    said = capsys.readouterr().err
    assert f"{directory.path} holds another run: it was started with width = 32, now" in said
    assert [path.name for path in tmp_path.iterdir()] == ["cartpole-swingup"]
    assert not list(tmp_path.glob("*/fog"))


def test_a_suite_that_is_missing_is_named_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = fog.envs.SuiteStatus("dmc", False, None, "dm_control missing: pip install dm_control")
    monkeypatch.setattr("fog.envs.detect.suites", lambda: [absent])
    assert main([*GRID, "--out", str(tmp_path)]) == 2
    assert "1 of the tasks cannot run here: dm_control missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags", [["--device", "cuda"], ["--gpus", "9"], ["--engine", "ray"], ["--engine", "slurm"]]
)
def test_a_sweep_that_is_refused_leaves_no_folder(
    flags: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for package in ("ray", "submitit"):
        monkeypatch.setitem(sys.modules, package, None)
    assert main([*GRID, "--out", str(tmp_path / "runs"), *flags]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_list_holds_a_command_for_every_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GRID, "--list", "--scale", "0.02", "--reset-steps", "none"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[0] == (
        "fog train --task=cartpole-swingup --variant=fog --seed=0 --scale=0.02 --reset-steps=none"
    )


def test_a_dry_run_shows_runs_updates_time_memory_and_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {}

    def estimate(configs: object, jobs: int, **options: object) -> Estimate:
        asked["configs"], asked["jobs"] = configs, jobs
        return Estimate(40_000.0, 20_000.0, 3 << 30, 1 << 60, [], ["as a test has it"])

    monkeypatch.setattr(fog.cost, "estimate", estimate)
    arguments = ["--plan", "motivating_example", "--scale", "0.03", "--out", str(tmp_path / "new")]
    assert main(["sweep", *arguments, "--dry-run", "--jobs", "3"]) == 0
    assert len(asked["configs"]) == 30
    assert asked["jobs"] == 3
    output = capsys.readouterr().out
    assert "humanoid-walk   0-2      30k  297,440    15  sac sac-reset per-sac" in output
    assert "30 runs (0 already finished, 0 started), 7,123,200 updates in all" in output
    assert "time    about 6 hours on this machine, 3 runs at once (11 hours on one core)" in output
    assert "memory  3.0 GiB" in output
    assert "note: as a test has it" in output
    assert "of disk is free; choose another --out" in output
    assert not (tmp_path / "new").exists()
