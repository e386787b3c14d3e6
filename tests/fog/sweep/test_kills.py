"""kill -9 of the sweep and of its workers at random moments: every run ends with the same bits."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fog.records.statuses import SETTLED
from tests.fog.sweep.running import jobs_of, start, workers
from tests.training import assert_same_run

KILLS = 20
LONG = {"steps": 10_000, "checkpoint_every": 90, "capacity": 1000}


def strike(sweep: subprocess.Popen[str], chance: random.Random) -> str:
    """Kill the sweep or one of its workers; returns whom, or nothing if there was nobody."""
    victims = [sweep.pid, sweep.pid, *workers(sweep)] if sweep.poll() is None else []
    if not victims:
        return ""
    pid = chance.choice(victims)
    os.kill(pid, signal.SIGKILL)
    if pid == sweep.pid:
        sweep.communicate()
        return "sweep"
    return "worker"


@pytest.mark.slow
def test_twenty_kills_leave_no_trace(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path / "killed", range(3), **LONG)
    chance = random.Random(7)
    killed: list[str] = []
    sweep = start(jobs, "--jobs", "2")
    try:
        while len(killed) < KILLS and any(job.status() not in SETTLED for job in jobs):
            time.sleep(chance.uniform(0.1, 6.0))
            if whom := strike(sweep, chance):
                killed.append(whom)
            if sweep.poll() is not None:
                sweep.communicate()
                sweep = start(jobs, "--jobs", "2")
        # A worker killed twice between two checkpoints is reported as failed; starting again cures.
        for _ in range(3):
            _, said = sweep.communicate(timeout=600)
            if sweep.returncode == 0:
                break
            sweep = start(jobs, "--jobs", "2")
    finally:
        with contextlib.suppress(ProcessLookupError):
            sweep.kill()
    assert sweep.returncode == 0, said
    assert len(killed) == KILLS, "the runs are too short for so many kills"
    assert set(killed) == {"sweep", "worker"}
    undisturbed = jobs_of(tmp_path / "whole", range(3), **LONG)
    start(undisturbed, "--jobs", "2").communicate(timeout=600)
    for job, whole in zip(jobs, undisturbed, strict=True):
        assert_same_run(whole.directory, job.directory)
