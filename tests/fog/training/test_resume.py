"""Kill at any moment, resume: the finished run equals the uninterrupted one, bit for bit."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fog
from fog.errors import UserError
from fog.probing.dispatch import Probes
from fog.records import checkpoint
from fog.records.run_directory import RunDirectory
from fog.replay import Replay
from fog.settings import config_file
from fog.settings.config import Config
from fog.training import video
from fog.training.trainer import Trainer
from tests.training import assert_same_run, newest, tiny

RESUMED = {
    "fog": {"variant": "fog"},
    "expanded-sac": {"variant": "expanded-sac", "task": "gym:InvertedPendulum-v4"},
    "fog-per": {"variant": "fog-per"},
    "fog-cuer": {"variant": "fog-cuer"},
    "fog-bro": {"variant": "fog-bro"},
    "simba": {"variant": "simba", "maximal_depth": 4},
    "fog-injection": {"variant": "fog-injection"},
    "ne": {"variant": "ne", "priming_updates": 120},
    "endless": {
        "variant": "fog",
        "task": "gym:InvertedPendulum-v4",
        "action_repeat": 3,
        "termination": "never",
    },
    "small-ring": {"variant": "fog", "capacity": 20},
    # Window, expansion, reset and checkpoint on one step, in this order.
    "all-at-280": {"reset_steps": (280,), "expansion_updates": (240,), "window_steps": 140},
}


def start(config: Config, *arguments: str) -> subprocess.Popen[str]:
    path = Path(config.runtime.out) / "config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(config_file.to_yaml(config))
    command = [sys.executable, "-m", "fog", "train", "--config", str(path), *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def run_directory(config: Config) -> Path:
    return Path(config.runtime.out) / "gym-Pendulum-v1" / config.run.variant / "seed0"


def wait_for_checkpoint(run: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not checkpoint.candidates(run / "checkpoint"):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)


@pytest.mark.parametrize("name", RESUMED)
def test_any_checkpoint_goes_on_to_the_same_end(tmp_path: Path, name: str) -> None:
    whole = fog.train(tiny(tmp_path / "whole", **RESUMED[name]))
    config = tiny(tmp_path / "cut", **RESUMED[name])
    cut = fog.train(config)
    # The checkpoint before the last stands mid-episode, after a reset and an expansion.
    earlier = checkpoint.candidates(cut.directory / "checkpoint")[1]
    assert earlier.name == f"{280:012d}"
    shutil.rmtree(newest(cut.directory))
    manifest = cut.directory / "manifest.json"
    manifest.write_text(manifest.read_text().replace("finished", "running"))
    assert fog.train(config, resume=True).status == "finished"
    assert_same_run(whole.directory, cut.directory)


LATER = ("action_repeat", "termination", "cuer_quota")


def forget_later_settings(run: Path) -> None:
    """The run as if it had stopped before its end, before these settings existed."""
    shutil.rmtree(newest(run))
    lines = (run / "config.yaml").read_text().splitlines(keepends=True)
    kept = [line for line in lines if line.split(":")[0].strip() not in LATER]
    assert len(lines) - len(kept) == len(LATER)
    (run / "config.yaml").write_text("".join(kept))
    manifest = (run / "manifest.json").read_text()
    (run / "manifest.json").write_text(manifest.replace("finished", "running"))


def test_runs_without_the_later_settings_go_on(tmp_path: Path) -> None:
    whole = fog.train(tiny(tmp_path / "whole"))
    config = tiny(tmp_path / "cut")
    cut = fog.train(config)
    forget_later_settings(cut.directory)
    assert fog.train(config, resume=True).status == "finished"
    assert_same_run(whole.directory, cut.directory)


def test_a_cuer_run_without_the_setting_is_one_of_the_first_reading(tmp_path: Path) -> None:
    step = tiny(tmp_path, "fog-cuer", replay_ratio=2.0, cuer_quota="step")
    run = fog.train(step)
    forget_later_settings(run.directory)
    said = "started with cuer_quota = step, now cuer_quota = batch"
    with pytest.raises(UserError, match=said):
        fog.train(tiny(tmp_path, "fog-cuer", replay_ratio=2.0), resume=True)
    assert fog.train(step, resume=True).status == "finished"


@pytest.mark.parametrize("variant", ["fog", "fog-bro", "simba", "ne"])
def test_kill_9_then_resume(tmp_path: Path, variant: str) -> None:
    whole = fog.train(tiny(tmp_path / "whole", variant, steps=700, checkpoint_every=150))
    config = tiny(tmp_path / "killed", variant, steps=700, checkpoint_every=150)
    process = start(config)
    wait_for_checkpoint(run_directory(config), process)
    time.sleep(random.Random(0).uniform(0.0, 0.3))
    process.kill()
    process.wait()
    assert json.loads((run_directory(config) / "manifest.json").read_text())["status"] == "running"
    again = start(config, "--resume")
    assert again.wait(120) == 0, again.stderr
    assert_same_run(whole.directory, run_directory(config))


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(12))
def test_kill_9_at_many_moments(tmp_path: Path, moment: int) -> None:
    whole = fog.train(tiny(tmp_path / "whole", steps=800, checkpoint_every=60))
    config = tiny(tmp_path / "killed", steps=800, checkpoint_every=60)
    wait = random.Random(moment)
    process = start(config)
    time.sleep(wait.uniform(0.5, 8.0))
    process.kill()
    process.wait()
    kills = 1
    while run_directory(config).joinpath("config.yaml").exists() and kills < 4:
        process = start(config, "--resume")
        time.sleep(wait.uniform(2.0, 6.0))
        process.kill()
        if process.wait() == 0:
            break
        kills += 1
    if not run_directory(config).joinpath("config.yaml").exists():
        start(config).wait(120)
    elif json.loads((run_directory(config) / "manifest.json").read_text())["status"] != "finished":
        assert start(config, "--resume").wait(120) == 0
    assert_same_run(whole.directory, run_directory(config))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_saves_and_says_how_to_go_on(tmp_path: Path, number: int) -> None:
    changes = {"steps": 700, "checkpoint_every": 100_000, "log_every": 10}
    config = tiny(tmp_path / "stopped", **changes)
    process = start(config)
    train = run_directory(config) / "train.csv"
    deadline = time.monotonic() + 60
    while not train.exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted; everything is saved. Continue with: fog train" in said
    assert "--resume" in said
    assert "Traceback" not in said
    manifest = json.loads((run_directory(config) / "manifest.json").read_text())
    assert manifest["status"] == "interrupted"
    again = start(config, "--resume")
    assert again.wait(120) == 0
    whole = fog.train(tiny(tmp_path / "whole", **changes))
    assert_same_run(whole.directory, run_directory(config))


def test_a_run_killed_before_its_first_checkpoint_starts_over(tmp_path: Path) -> None:
    whole = fog.train(tiny(tmp_path / "whole"))
    config = tiny(tmp_path / "cut")
    cut = fog.train(config)
    shutil.rmtree(cut.directory / "checkpoint")
    (cut.directory / "manifest.json").unlink()
    assert fog.train(config, resume=True).status == "finished"
    assert_same_run(whole.directory, cut.directory)


def interrupt(config: Config, at: int) -> Path:
    """Train with a Ctrl-C at a step, in this process."""
    step = Trainer._step

    def step_and_stop(trainer: Trainer) -> None:
        step(trainer)
        if trainer.progress.env_step == at:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_step", step_and_stop)
        run = fog.train(config)
    assert run.status == "interrupted"
    return run.directory


FAILED_STARTS = {
    "no GPU": (Trainer, "__init__", UserError("no CUDA device here")),
    "no memory": (Replay, "load", MemoryError()),
    "second Ctrl-C": (Trainer, "restore", KeyboardInterrupt()),
}


@pytest.mark.parametrize("cause", FAILED_STARTS)
def test_a_resume_that_fails_loses_nothing(tmp_path: Path, cause: str) -> None:
    whole = fog.train(tiny(tmp_path / "whole", probes=("dormancy",)))
    config = tiny(tmp_path / "cut", probes=("dormancy",))
    run = interrupt(config, at=150)
    tables = {path: path.read_bytes() for path in run.rglob("*") if path.suffix == ".csv"}
    home, name, error = FAILED_STARTS[cause]

    def fail(*_: object, **__: object) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, name, fail)
        with pytest.raises(type(error)):
            fog.train(config, resume=True)
    manifest = RunDirectory(run).manifest()
    assert (manifest["status"], manifest["env_step"]) == ("failed", 150)
    assert {path: path.read_bytes() for path in tables} == tables
    with pytest.raises(UserError, match="already holds a run"):
        fog.train(config)
    assert fog.train(config, resume=True).status == "finished"
    assert_same_run(whole.directory, run)
    measured, again = (
        sorted(path.name for path in (home / "probes").rglob("*.parquet"))
        for home in (whole.directory, run)
    )
    assert measured and measured == again


def test_a_resume_that_is_refused_leaves_the_run_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny(tmp_path)
    run = interrupt(config, at=150)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}

    def refuse(config: Config) -> None:
        raise UserError("no OpenGL here")

    monkeypatch.setattr(video, "check", refuse)
    with pytest.raises(UserError, match="no OpenGL here"):
        fog.train(config.replace(video_episodes=1), resume=True)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_run_with_a_checkpoint_is_never_started_anew(tmp_path: Path) -> None:
    """Also where an earlier version has written that it failed at step 0."""
    config = tiny(tmp_path)
    directory = RunDirectory(interrupt(config, at=150))
    directory.update_manifest(status="failed", env_step=0)
    assert not directory.stillborn()
    with pytest.raises(UserError, match="already holds a run"):
        fog.train(config)


def test_killed_after_the_last_save_the_end_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[Probes] = []
    monkeypatch.setattr(Probes, "end", lambda probes: ends.append(probes))
    config = tiny(tmp_path)
    run = fog.train(config)
    RunDirectory(run.directory).update_manifest(status="running")
    again = fog.train(config, resume=True)
    assert (again.status, again.final_return) == ("finished", run.final_return)
    assert len(ends) == 1


def test_other_settings_are_refused_and_named(tmp_path: Path) -> None:
    fog.train(tiny(tmp_path))
    with pytest.raises(UserError, match="started with batch_size = 16, now batch_size = 8"):
        fog.train(tiny(tmp_path, batch_size=8), resume=True)


def test_a_damaged_checkpoint_is_refused_and_the_one_before_is_used(tmp_path: Path) -> None:
    whole = fog.train(tiny(tmp_path / "whole"))
    config = tiny(tmp_path / "cut")
    cut = fog.train(config)
    damaged = newest(cut.directory)
    weights = damaged / "agent.pt"
    weights.write_bytes(weights.read_bytes()[:-100])
    manifest = cut.directory / "manifest.json"
    manifest.write_text(manifest.read_text().replace("finished", "running"))
    assert "truncated" in (checkpoint.verify(damaged) or "")
    assert fog.train(config, resume=True).status == "finished"
    assert_same_run(whole.directory, cut.directory)


def test_a_damaged_checkpoint_does_not_outlive_the_resume(tmp_path: Path) -> None:
    """By its step it would count as the newest, and the sweep would see no progress."""
    config = tiny(tmp_path, steps=600, checkpoint_every=200)
    run = interrupt(config, at=250)
    (newest(run) / "agent.pt").unlink()
    step = Trainer._step

    def fail_late(trainer: Trainer) -> None:
        step(trainer)
        if trainer.progress.env_step == 205:
            raise MemoryError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(Trainer, "_step", fail_late)
        fog.train(config, resume=True)
    assert [int(path.name) for path in checkpoint.candidates(run / "checkpoint")] == [200]
