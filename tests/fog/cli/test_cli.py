"""The commands as a user types them: output, exit codes, one-line errors."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from diagnostics.errors import _listed
from fog.cli import main
from fog.cli.dryrun import describe
from fog.cli.train import configure
from fog.errors import UserError
from fog.records.run_directory import RunDirectory
from fog.settings.config import Config
from fog.settings.variants import resolve
from fog.system.text import listed
from fog.training import run as training

TINY = shlex.split(
    "train --task gym:Pendulum-v1 --variant fog --scale 0.02 --steps 60 --warmup-steps 20 "
    "--batch-size 16 --width 8 --eval-every 30 --eval-episodes 1 --log-every 20 --no-tensorboard "
    "--replay-ratio 1 --compile off"
)


def fog(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fog", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd)


def test_help_needs_no_torch() -> None:
    code = (
        "import sys; from fog.cli import main; main(['--help']); main(['tasks']); "
        "main(['variants']); sys.exit('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "commands:" in result.stdout


def test_listings_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert len(records) == 41
    assert records[0]["paper_scores"]["FoG"] == {"mean": 6979.19, "std": 98.06}
    assert main(["variants", "--json"]) == 0
    variants = {item["name"]: item for item in json.loads(capsys.readouterr().out)}
    assert variants["fog"]["overrides"] == {}
    assert variants["fog-per"]["overrides"] == {"sampler": "per"}


def test_listings_for_people_fit_a_wide_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    main(["tasks"])
    main(["variants"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 120


MISTAKES = [
    (["trian"], "did you mean 'train'"),
    (["train"], "no task given"),
    (["train", "--task", "humanod-walk"], "did you mean 'humanoid-walk'"),
    (["train", "--task", "humanoid-walk", "--variant", "sac_reset"], "did you mean 'sac-reset'"),
    (["train", "--task", "humanoid-walk", "--widht", "3"], "did you mean '--width'"),
    (["train", "--task", "humanoid-walk", "--width", "three"], "--width"),
    (["train", "--task", "humanoid-walk", "--steps", "100"], "warm-up"),
    (["train", "--task", "humanoid-walk", "--tau", "2"], "tau: must be >= 0 and <= 1"),
    (["train", "--task", "humanoid-walk", "--sampler", "prio"], "--sampler"),
    (["train", "--task", "humanoid-walk", "--probes", "nope"], "unknown probe 'nope'"),
    (["train", "--task", "humanoid-walk", "extra"], "unexpected argument 'extra'"),
    (["train", "--config", "/nowhere.yaml"], "cannot read config /nowhere.yaml"),
    (["tasks", "--group", "DMC-Eazy"], "did you mean 'DMC-Easy'"),
    (["tasks", "--jsno"], "did you mean '--json'"),
    (["tasks", "--foo"], "unknown option '--foo': known: --help, --json, --group"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES, ids=lambda value: " ".join(value)[:40])
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert said in output.err
    assert output.err.count("\n") == 1
    assert output.out == ""


@pytest.mark.parametrize(
    "arguments", [["power", "--claim", "x"], ["train", "--task", "Ant-v4", "--foo"]]
)
def test_a_long_list_of_names_is_cut_between_two_and_says_how_many_are_left(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert re.search(r"[^ ,] and \d+ more\n$", said)
    assert " ... " not in said


def test_names_that_fit_are_listed_in_full() -> None:
    for list_names in (listed, _listed):
        assert list_names(["one", "two, with a comma"]) == "one, two, with a comma"
        assert list_names(["a" * 390, "b, c" * 5, "d"]) == f"{'a' * 390} and 2 more"


def test_flags_are_typed_and_take_numbers_as_people_write_them() -> None:
    flags = (
        "--task humanoid-walk --steps 2e5 --capacity 100_000 --reset-steps 1000 5e3 "
        "--expansion-updates none --probes none --no-tensorboard --wandb none"
    )
    config, _ = configure(shlex.split(flags))
    assert (config.run.steps, config.replay.capacity) == (200_000, 100_000)
    assert config.lifecycle.reset_steps == (1_000, 5_000)
    assert config.lifecycle.expansion_updates == ()
    assert config.runtime.wandb is None
    assert not config.runtime.tensorboard


def test_file_then_flags(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    task = "run: {task: cartpole-swingup, scale: 0.1}"
    path.write_text(f"{task}\nreplay: {{tau: 0.2, epsilon: 1e-3}}\n")
    config, _ = configure(["--config", str(path), "--tau", "0.3"])
    assert config.run.steps == 15_000
    assert (config.replay.tau, config.replay.epsilon) == (0.3, 1e-3)
    with pytest.raises(UserError, match="contradicts"):
        configure(["--config", str(path), "--scale", "0.2"])


def test_help_shows_the_variants_own_values() -> None:
    result = fog("train", "--variant", "sac", "--help")
    assert result.returncode == 0
    assert "hidden units of every layer [256]" in result.stdout


def test_dry_run_shows_the_experiment_and_writes_nothing(tmp_path: Path) -> None:
    result = fog("train", "--task", "HalfCheetah-v4", "--dry-run", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "19,384,342" in result.stdout
    assert (
        "skipped: expansion at step 25000 (the reset at step 15000 comes first; the next expansion "
        "is at step 20000)\n"
    ) in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_dry_run_of_injections_says_what_its_depth_counts() -> None:
    settings = {"width": 8, "batch_size": 16, "scale": 0.02}
    told = describe(resolve("gym:Pendulum-v1", "fog-injection", **settings))
    assert "plasticity injection 1, " in told
    assert "depth counts blocks and injections" in told


def test_train_then_the_same_again_is_refused(tmp_path: Path) -> None:
    first = fog(*TINY, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stderr.startswith("Training fog on gym:Pendulum-v1, seed 0, 60 steps, scale 0.02")
    assert "Finished" in first.stderr
    run = tmp_path / "runs" / "gym-Pendulum-v1" / "fog" / "seed0"
    assert json.loads((run / "manifest.json").read_text())["status"] == "finished"
    again = fog(*TINY, cwd=tmp_path)
    assert again.returncode == 2
    assert "already holds a run (finished) that cannot be lengthened: choose" in again.stderr
    finished = fog(*TINY, "--resume", cwd=tmp_path)
    assert finished.returncode == 2
    assert "is finished and cannot be lengthened: choose another" in finished.stderr


def test_a_run_that_diverges_exits_with_3(tmp_path: Path) -> None:
    # A learning rate this absurd overflows float32 within a few updates.
    result = fog(*TINY, "--critic-lr", "1e15", cwd=tmp_path)
    assert result.returncode == 3, result.stderr
    assert "Diverged: see runs/gym-Pendulum-v1/fog/seed0/events.csv" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_run_that_is_being_written_exits_with_75(tmp_path: Path) -> None:
    config, _ = configure([*TINY[1:], "--out", str(tmp_path)])
    held = RunDirectory.create(config)
    for resume in ([], ["--resume"]):
        result = fog(*TINY, "--out", str(tmp_path), *resume)
        assert result.returncode == 75
        assert result.stderr.endswith("is being written by another process\n")
    held.unlock()


def test_the_command_that_goes_on_can_be_pasted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(config: Config, **options: bool) -> training.Run:
        return training.Run(tmp_path, "interrupted", None)

    monkeypatch.setattr(training, "train", interrupted)
    arguments = [*TINY, "--out", "my runs"]
    assert main(arguments) == 130
    command = capsys.readouterr().err.partition("Continue with: ")[2]
    assert shlex.split(command) == ["fog", *arguments, "--resume"]


def test_resume_without_a_run_is_refused(tmp_path: Path) -> None:
    result = fog(*TINY, "--resume", cwd=tmp_path)
    assert result.returncode == 2
    assert "nothing to resume" in result.stderr
    assert "start it without `--resume` (in Python without `resume=True`)" in result.stderr


@pytest.mark.parametrize("flags", [[], ["--width", "9"], ["--width", "9", "--resume"]])
def test_the_command_that_a_refusal_names_continues_the_run(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = [*TINY, "--out", str(tmp_path / "first")]
    directory = RunDirectory.create(configure(begun[1:])[0])
    directory.update_manifest(status="interrupted")
    directory.unlock()
    moved = tmp_path / "my runs"
    (tmp_path / "first").rename(moved)
    assert main([*begun, "--out", str(moved), *flags]) == 2
    said = capsys.readouterr().err
    assert ("it was started with width = 8, now width = 9" in said) == bool(flags)
    command = shlex.split(said.split("`")[1])
    assert command[0] == "fog"
    assert main(command[1:]) == 0


REFUSED = {
    "no GPU": (["--device", "cuda"], "device: no CUDA device here"),
    "no wandb": (
        ["--wandb", "project"],
        "not installed: pip install -c constraints.txt -e '.[wandb]' in the checkout",
    ),
    "no task": (["--task", "gym:NoSuchTask-v0"], "unknown task gym:NoSuchTask-v0"),
    "no run": (["--resume"], "nothing to resume"),
    "no fit": (["--variant", "simba", "--growth", "injection"], "simba grows by blocks"),
}


@pytest.mark.parametrize("cause", REFUSED)
def test_a_run_that_is_refused_says_one_line_and_leaves_nothing(
    cause: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    flags, said = REFUSED[cause]
    assert main([*TINY, "--out", str(tmp_path / "runs"), *flags]) == 2
    output = capsys.readouterr()
    assert said in output.err
    assert output.err.count("\n") == 1
    assert output.out == ""
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_directory_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where a directory should be")
    result = fog(*TINY, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("fog: cannot write run directory")
    assert result.stderr.count("\n") == 1


def test_doctor_reports_for_people_and_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {status["suite"] for status in report["suites"]} >= {"mujoco", "dmc", "metaworld"}
    assert report["torch"]["works"]
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "suites" in said
    assert "rendering (only videos need it; one that works is enough)" in said
