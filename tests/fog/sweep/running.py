"""Sweeps of tiny real runs for tests."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fog.sweep.job import Job
from tests.training import TINY

TASK = "gym:Pendulum-v1"
VARIANT = "expanded-sac"


def jobs_of(out: Path, seeds: range, **changes: Any) -> list[Job]:
    settings = {**TINY, "out": str(out), **changes}
    return [Job.of(TASK, VARIANT, seed, 1.0, settings) for seed in seeds]


def start(jobs: list[Job], *flags: str) -> subprocess.Popen[str]:
    """`fog sweep` of these jobs, as a user would start it from a script."""
    seeds = [str(job.config.run.seed) for job in jobs]
    own = ("--task=", "--variant=", "--seed=")
    command = [sys.executable, "-m", "fog", "sweep", "--tasks", TASK, "--seeds", *seeds]
    command += [flag for flag in jobs[0].flags if not flag.startswith(own)]
    command += ["--variants", VARIANT, *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(reached: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)


def workers(sweep: subprocess.Popen[str]) -> list[int]:
    """Process ids of the runs that a sweep has started."""
    found = Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children").read_text()
    return [int(pid) for pid in found.split()]
