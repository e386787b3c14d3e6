"""A run's state is what its directory says."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from fog.errors import UserError
from fog.records.run_directory import RunDirectory
from fog.sweep import progress
from fog.sweep.job import Job
from tests.training import TINY


def job_in(out: Path, **changes: Any) -> Job:
    return Job.of("gym:Pendulum-v1", "fog", 0, 1.0, {**TINY, "out": str(out), **changes})


def test_status_comes_from_manifest_and_lock(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    assert job.status() == "new"
    assert "--resume" not in job.command()
    directory = RunDirectory.create(job.config)
    assert job.status() == "busy"
    directory.update_manifest(status="running")
    assert job.status() == "busy"
    directory.unlock()
    assert job.status() == "killed"
    assert job.command()[-1] == "--resume"
    for status in ("interrupted", "failed", "finished", "diverged"):
        directory.update_manifest(status=status)
        assert job.status() == status


def test_a_primed_run_says_its_dose(tmp_path: Path) -> None:
    assert job_in(tmp_path).label == "gym:Pendulum-v1 fog seed0"
    primed = job_in(tmp_path, priming_updates=100_000)
    assert primed.label == "gym:Pendulum-v1 fog primed 100,000 seed0"


def test_a_run_that_failed_before_its_first_step_starts_anew(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    directory = RunDirectory.create(job.config)
    directory.unlock()
    directory.update_manifest(status="failed", env_step=0)
    assert job.status() == "failed"
    assert "--resume" not in job.command()


def test_looking_at_a_lock_does_not_take_it(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    directory = RunDirectory.create(job.config)
    directory.unlock()
    assert not directory.locked()
    RunDirectory.reopen(job.config).unlock()


def test_a_job_can_be_sent_elsewhere(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    assert pickle.loads(pickle.dumps(job)) == job
    assert job.directory == tmp_path / "gym-Pendulum-v1" / "fog" / "seed0"


def test_progress_counts_whole_rows_only(tmp_path: Path) -> None:
    assert progress.read(tmp_path) == progress.Progress()
    train, evals = tmp_path / "train.csv", tmp_path / "evals.csv"
    train.write_text("env_step,updates,steps_per_second\n")
    assert progress.read(tmp_path) == progress.Progress()
    train.write_text("env_step,updates,steps_per_second\n50,10,8.5\n100,60,9.5\n150,1")
    evals.write_text("env_step,return,length\n50,1.0,3\n100,2.0,3\n100,4.0,3\n")
    assert progress.read(tmp_path) == progress.Progress(100, 9.5, 3.0)


def test_progress_reads_the_end_of_a_long_table(tmp_path: Path) -> None:
    rows = [f"{step},{step * 10},{step / 7!r}" for step in range(1, 200_000, 7)]
    (tmp_path / "train.csv").write_text("\n".join(["env_step,updates,steps_per_second", *rows, ""]))
    last = rows[-1].split(",")
    assert progress.read(tmp_path) == progress.Progress(int(last[0]), float(last[2]))


def test_the_newest_checkpoint(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    assert job.checkpoint_step() == 0
    for name in ("000000000070", "000000000140", "partial-000000000210"):
        (job.directory / "checkpoint" / name).mkdir(parents=True)
    assert job.checkpoint_step() == 140


def test_a_directory_is_locked_before_it_is_judged_empty(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    first = RunDirectory.create(job.config)
    with pytest.raises(UserError, match="is being written by another process"):
        RunDirectory.create(job.config)
    first.unlock()
    with pytest.raises(UserError, match="already holds a run"):
        RunDirectory.create(job.config)
    assert not first.locked()
