"""A run as a separate process: capped threads, a log, and a stop that loses nothing."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from fog.sweep.gpus import VISIBLE
from fog.sweep.job import Job
from fog.system.interrupts import StopRequest

THREAD_CAPS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def environment(job: Job, gpu: str | None = None) -> dict[str, str]:
    """The environment of a run: numerical libraries keep to its threads, torch to its GPU.

    Libraries take all cores by default, and parallel runs would then fight over them. torch takes
    the first GPU that it sees.
    """
    threads = str(job.config.runtime.threads)
    pinned = {} if gpu is None else {VISIBLE: gpu}
    return {**os.environ, **dict.fromkeys(THREAD_CAPS, threads), **pinned}


class Process:
    """The running `fog train` of one job, leader of its own process group.

    Ctrl-C on the terminal reaches the sweep alone, which then asks each run to save. If this
    process dies without asking, Linux sends the run a SIGTERM, so it saves and stops as well.
    """

    def __init__(self, job: Job, gpu: str | None = None) -> None:
        """Start or resume the run, on one GPU if it is named.

        Raises:
            OSError: the run directory cannot be written, or no process can be made.
        """
        self.job = job
        self.gpu = gpu
        job.directory.mkdir(parents=True, exist_ok=True)
        with job.log.open("ab") as log:
            self._popen = subprocess.Popen(
                job.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=_home(job),
                env=environment(job, gpu),
                start_new_session=True,
                preexec_fn=_leash(os.getpid()),
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""
        return self._popen.poll()

    def stop(self) -> None:
        """Ask it to save and stop."""
        if self.poll() is None:
            self._popen.terminate()

    def kill(self) -> None:
        """End it and whatever it started; its last checkpoint stays."""
        if self.poll() is None:
            os.killpg(self._popen.pid, signal.SIGKILL)

    def wait(self, seconds: float | None = None) -> int | None:
        """Wait for its end; the exit code, or None if it still runs."""
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


def run(job: Job) -> int:
    """Run a job to its end in a separate process and return the exit code.

    For engines whose workers wait: a SIGTERM or SIGINT to the worker is passed on once, so the run
    saves, and 130 is returned.
    """
    with StopRequest() as stop:
        process = Process(job)
        passed_on = False
        while (code := process.wait(0.2)) is None:
            if stop.requested and not passed_on:
                process.stop()
                passed_on = True
    return code


def _home(job: Job) -> Path | None:
    """Where the run's process starts: where the sweep was started, if this node has that folder.

    Another node may share only the run directories. Then it starts wherever we are: its `--out`
    must be absolute, or its directory would not have been found.
    """
    return job.home if os.access(job.home, os.X_OK) else None


def _leash(parent: int) -> Callable[[], None] | None:
    """What to do between fork and exec: have the kernel send SIGTERM when the parent dies."""
    if _LIBC is None:
        return None
    prctl = _LIBC.prctl

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(130)

    return tie
