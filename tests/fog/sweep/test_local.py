"""Real processes: runs side by side, killed, stopped, raced for, and never harmed."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import fog
from fog.records.run_directory import RunDirectory
from fog.sweep.job import Job
from fog.sweep.process import THREAD_CAPS, Process, environment
from tests.fog.sweep.running import TASK, VARIANT, jobs_of, start, until, workers
from tests.training import TINY, assert_same_run, tiny


def test_runs_side_by_side_equal_a_run_alone_and_are_then_skipped(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path / "swept", range(3))
    output, said = (sweep := start(jobs, "--jobs", "2")).communicate(timeout=300)
    assert sweep.returncode == 0, said
    assert "3 runs: 3 finished" in output
    whole = fog.train(tiny(tmp_path / "whole", VARIANT, seed=2))
    assert_same_run(whole.directory, jobs[2].directory)
    assert "Finished. Last evaluation return" in jobs[2].log.read_text()
    before = [job.log.stat().st_mtime_ns for job in jobs]
    output, said = (again := start(jobs)).communicate(timeout=60)
    assert again.returncode == 0
    assert "running" not in said
    assert [job.log.stat().st_mtime_ns for job in jobs] == before


def test_ctrl_c_saves_all_runs_and_the_same_command_goes_on(tmp_path: Path) -> None:
    slow = {"steps": 500, "log_every": 10, "checkpoint_every": 100_000}
    jobs = jobs_of(tmp_path / "swept", range(3), **slow)
    sweep = start(jobs, "--jobs", "2")
    until(lambda: all((job.directory / "train.csv").exists() for job in jobs[:2]), sweep)
    sweep.send_signal(signal.SIGINT)
    output, said = sweep.communicate(timeout=60)
    assert sweep.returncode == 130, said
    assert "Stopping: 2 runs are saving" in said
    assert "Continue with: fog sweep --tasks gym:Pendulum-v1 --seeds 0 1 2" in said
    assert "Traceback" not in said
    assert "3 runs: 2 interrupted, 1 waiting" in output
    assert [job.status() for job in jobs] == ["interrupted", "interrupted", "new"]
    output, said = (again := start(jobs, "--jobs", "2")).communicate(timeout=300)
    assert again.returncode == 0, said
    whole = fog.train(tiny(tmp_path / "whole", VARIANT, **slow))
    assert_same_run(whole.directory, jobs[0].directory)


def test_a_worker_killed_with_9_is_resumed_within_the_sweep(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path / "swept", range(2), steps=500)
    sweep = start(jobs, "--jobs", "2")
    until(lambda: all(job.checkpoint_step() > 0 for job in jobs), sweep)
    for pid in workers(sweep):
        os.kill(pid, signal.SIGKILL)
    _, said = sweep.communicate(timeout=300)
    assert sweep.returncode == 0, said
    assert said.count("killed by SIGKILL") == 2
    whole = fog.train(tiny(tmp_path / "whole", VARIANT, steps=500))
    assert_same_run(whole.directory, jobs[0].directory)


def test_runs_save_and_stop_when_the_sweep_is_killed_with_9(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path / "swept", range(2), steps=500, checkpoint_every=100_000, log_every=10)
    sweep = start(jobs, "--jobs", "2")
    until(lambda: all((job.directory / "train.csv").exists() for job in jobs), sweep)
    sweep.kill()
    sweep.communicate()
    # Started at once, while the orphans are still saving and hold their locks.
    _, said = (again := start(jobs, "--jobs", "2")).communicate(timeout=300)
    assert again.returncode == 0, said
    assert "Interrupted; everything is saved" in jobs[0].log.read_text()
    whole = fog.train(
        tiny(tmp_path / "whole", VARIANT, steps=500, checkpoint_every=100_000, log_every=10)
    )
    assert_same_run(whole.directory, jobs[0].directory)


def test_two_sweeps_into_one_folder_share_the_work(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path / "swept", range(4))
    sweeps = [start(jobs, "--jobs", "1") for _ in range(2)]
    results = [sweep.communicate(timeout=300) for sweep in sweeps]
    assert [sweep.returncode for sweep in sweeps] == [0, 0], results
    logs = [job.log.read_text() for job in jobs]
    # No run was trained twice, whoever lost a race for one.
    assert all(log.count("Finished. ") == 1 for log in logs)
    whole = fog.train(tiny(tmp_path / "whole", VARIANT))
    assert_same_run(whole.directory, jobs[0].directory)


def test_a_run_that_diverges_is_a_result_and_the_other_goes_on(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    settings = TINY | {"reset_steps": [120], "expansion_updates": [30], "out": str(tmp_path)}
    document = {
        "name": "divergence",
        "tasks": TASK,
        "variants": VARIANT,
        "settings": settings,
        # A learning rate this absurd overflows float32 within a few updates.
        "runs": [{"seeds": 0, "settings": {"critic_lr": 1e15}}, {"seeds": 1}],
    }
    plan.write_text(yaml.safe_dump(document))
    command = [sys.executable, "-m", "fog", "sweep", "--plan", str(plan), "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "2 runs: 1 diverged, 1 finished" in done.stdout
    assert "Traceback" not in done.stderr
    home = tmp_path / "gym-Pendulum-v1" / VARIANT
    found = [RunDirectory(home / f"seed{seed}").manifest()["status"] for seed in (0, 1)]
    assert found == ["diverged", "finished"]


def test_a_run_starts_on_a_node_without_the_folder_of_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = [sys.executable, "-c", "import os; print(os.getcwd())"]
    monkeypatch.setattr(Job, "command", lambda job: where)
    (job,) = jobs_of(tmp_path / "shared", range(1))
    for home, expected in ((tmp_path, tmp_path), (tmp_path / "not here", Path.cwd())):
        process = Process(dataclasses.replace(job, home=home))
        assert process.wait(60) == 0
        assert job.log.read_text().splitlines()[-1] == str(expected)
    assert not (tmp_path / "not here").exists()


def test_threads_of_a_run_are_capped(tmp_path: Path) -> None:
    (job,) = jobs_of(tmp_path, range(1), threads=3)
    assert {environment(job)[name] for name in THREAD_CAPS} == {"3"}


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_fails_in_one_line_and_harms_no_other_run(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    try:
        jobs = jobs_of(disk / "swept", range(2))
        start(jobs[:1]).communicate(timeout=120)
        assert jobs[0].status() == "finished"
        filler = disk / "filler"
        with pytest.raises(OSError):
            filler.write_bytes(bytes(1 << 20))
        with filler.open("r+b") as file:
            file.truncate(filler.stat().st_size - (24 << 10))
        output, said = (sweep := start(jobs)).communicate(timeout=120)
        assert sweep.returncode == 1, said
        assert "2 runs: 1 failed, 1 finished" in output
        assert "The disk is full: free some space" in output
        assert "Traceback" not in said
        filler.unlink()
        output, said = (again := start(jobs)).communicate(timeout=120)
        assert again.returncode == 0, said
        for seed in (0, 1):
            whole = fog.train(tiny(tmp_path / "whole", VARIANT, seed=seed))
            assert_same_run(whole.directory, jobs[seed].directory)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
