"""Runs as one Slurm job array, submitted through submitit.

An element of the array is one run. Slurm may stop and restart it any number of times: shortly
before the time limit, on preemption and on `scontrol requeue` the run is told to save, and when it
is started again it resumes from there.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fog.errors import UserError
from fog.sweep import request, sbatch
from fog.sweep.engine import LOST, Ended, missing
from fog.sweep.job import Job
from fog.sweep.process import Process
from fog.sweep.request import request_of
from fog.system.children import python
from fog.system.code_cache import distrust
from fog.system.interrupts import StopRequest

_SAVE_SECONDS = 180
"""How long before the time limit a run is told to save; a quarter of the limit if that is less."""
_REQUEUES = 1_000_000
"""Times that a run may reach its limit: it makes progress each time, so there is no end to set."""
_QUERY_SECONDS = 5.0
_FOLDER = ".slurm"
"""Scripts, pickles and outputs of the jobs, within --out, which all nodes must share."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the jobs ask of Slurm."""
    group = parser.add_argument_group("slurm")
    group.add_argument(
        "--time",
        default="1-00:00:00",
        metavar="D-HH:MM:SS",
        help="limit of one stretch; a run that needs more is requeued [%(default)s]",
    )
    group.add_argument(
        "--slurm",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any other option of sbatch, such as partition=gpu or account=me; repeatable",
    )
    group.add_argument(
        "--detach", action="store_true", help="submit and return; the runs need no sweep to watch"
    )
    request.add_options(parser)


def make(options: argparse.Namespace, jobs: Sequence[Job]) -> SlurmEngine:
    """An engine for one array of these runs; all ask for what the largest needs."""
    minutes, extra = sbatch.minutes_of(options.time), sbatch.extras(options.slurm)
    requests = [request_of(options, job.config) for job in jobs]
    gpus = max((each.gpus for each in requests), default=0.0)
    if gpus != int(gpus):
        raise UserError(
            f"--gpus-per-run: Slurm allocates whole GPUs, got {gpus:g}; if the cluster shares "
            "them, ask with --slurm gres=shard:1"
        )
    try:
        import submitit
    except ImportError:
        raise missing("slurm", "submitit") from None
    if shutil.which("sbatch") is None or shutil.which("srun") is None:
        raise UserError("engine slurm needs Slurm's commands (sbatch): start it on a login node")
    parameters: dict[str, Any] = {
        "time": minutes,
        "cpus_per_task": max((each.cpus for each in requests), default=1),
        "mem": f"{math.ceil(max((each.memory_bytes for each in requests), default=0) / 2**20)}M",
        "signal_delay_s": min(_SAVE_SECONDS, 15 * minutes),
        "additional_parameters": {"requeue": True, **extra},
    }
    if gpus:
        parameters["gpus_per_node"] = int(gpus)
    if options.jobs is not None:
        parameters["array_parallelism"] = options.jobs
    out = (jobs[0].home / jobs[0].config.runtime.out).resolve()
    name = f"fog-{hashlib.sha256(str(out).encode()).hexdigest()[:8]}"
    if sbatch.live(name):
        # Submitted twice, the second array would only find the runs taken.
        raise UserError(
            f"runs of {out} are already in Slurm's queue: `squeue --name={name}` shows them, "
            f"`scancel --name={name}` removes them"
        )
    executor = submitit.SlurmExecutor(
        _private(out / _FOLDER), max_num_timeout=_REQUEUES, python=shlex.join(python())
    )
    return SlurmEngine(name, executor, parameters, detached=options.detach)


def _private(folder: Path) -> Path:
    """The folder for submitit's pickles, which no other user may write: unpickling runs code."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        reason = distrust(folder)
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        raise UserError(f"{folder} cannot hold Slurm's jobs: {reason}")
    return folder


class Run:
    """One run as submitit sees it: called to train, told to save by `checkpoint`."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._process: Process | None = None

    def __call__(self) -> int:
        """Start or resume the run and wait for its end; the exit code of `fog train`."""
        import submitit

        # The result of an earlier stretch: if this one vanishes, it must not be taken for its
        # result.
        submitit.JobEnvironment().paths.result_pickle.unlink(missing_ok=True)
        done = {"finished": 0, "diverged": 3}.get(self.job.status())
        # If another run is there, the run that we start says so.
        if done is not None and self.job.conflict() is None:
            return done
        with StopRequest() as stop:
            self._process = _deaf(self.job)
            told = False
            while (code := self._process.wait(0.2)) is None:
                if stop.requested and not told:
                    self._process.stop()
                    told = True
        return code

    def checkpoint(self) -> Any:
        """Called by submitit before the time limit: save, and be requeued as the same run."""
        from submitit.helpers import DelayedSubmission

        if self._process is not None:
            self._process.stop()
            self._process.wait()
        return DelayedSubmission(Run(self.job))


def _deaf(job: Job) -> Process:
    """Start a run that does not hear SIGUSR2.

    Slurm sends it to every process of the job before the time limit, and a process without a
    handler dies. Only this process should receive it: it then asks the run to save.
    """
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        return Process(job)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


@dataclass
class _Submitted:
    handle: Any
    at: float
    running: bool = False


class SlurmEngine:
    """A job array. Slurm queues, starts and requeues; this class only watches and reports."""

    slots: int | None = None

    def __init__(
        self, name: str, executor: Any, parameters: dict[str, Any], *, detached: bool
    ) -> None:
        self.detached = detached
        """Whether the sweep returns as soon as the runs are submitted."""
        self._name = name
        self._executor = executor
        self._executor.update_parameters(job_name=name, **parameters)
        self._submitted: dict[Job, _Submitted] = {}
        self._refused: list[Ended] = []
        self._stopping = False
        self._query: subprocess.Popen[str] | None = None
        self._asked = float("-inf")
        self._told: list[subprocess.Popen[bytes]] = []

    def submit(self, jobs: Sequence[Job]) -> None:
        """Submit the runs, as one array unless it would be larger than the cluster allows."""
        import submitit

        most = sbatch.largest_array()
        for start in range(0, len(jobs), most):
            part = jobs[start : start + most]
            try:
                with self._executor.batch():
                    handles = [self._executor.submit(Run(job)) for job in part]
                now = time.monotonic()
                self._submitted |= {
                    job: _Submitted(handle, now) for job, handle in zip(part, handles, strict=True)
                }
            except (submitit.core.utils.FailedJobError, OSError) as error:
                said = " ".join(str(error).split()).removeprefix("sbatch: error: ")
                self._refused += [Ended(job, 2, f"Slurm refused it: {said}") for job in part]

    def running(self) -> frozenset[Job]:
        """Runs that are on a node."""
        return frozenset(job for job, held in self._submitted.items() if held.running)

    def poll(self) -> list[Ended]:
        """The runs that ended since the last call, as far as Slurm's queue is known."""
        ended, self._refused = self._refused, []
        states = self._states()
        if states is None:
            return ended
        for job, held in list(self._submitted.items()):
            state = states.get(held.handle.job_id, "")
            held.running = state in sbatch.ON_A_NODE
            # A job younger than the question cannot be in the answer.
            if held.running or state in sbatch.WAITING or held.at > self._asked:
                continue
            del self._submitted[job]
            ended.append(self._end(job, held, state))
        if self._stopping and self._submitted:
            # A run that was just starting may not have heard it the first time.
            self._tell("--state=RUNNING", "--signal=TERM")
        return ended

    def _states(self) -> dict[str, str] | None:
        """States by job id, if an answer has come; asks again when it is time to."""
        if self._query is None:
            if self._submitted and time.monotonic() - self._asked > _QUERY_SECONDS:
                self._asked = time.monotonic()
                self._query = subprocess.Popen(
                    sbatch.query(self._name),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            return None
        if self._query.poll() is None:
            return None
        with self._query as query:
            answer = query.communicate()[0]
        self._query = None
        if query.returncode != 0:
            # Slurm is busy or restarting; it will answer another time.
            return None
        return sbatch.states(answer)

    def _end(self, job: Job, held: _Submitted, state: str) -> Ended:
        from submitit.core.utils import FailedJobError, UncompletedJobError

        if held.handle.paths.result_pickle.exists():
            try:
                return Ended(job, int(held.handle.result()))
            except (FailedJobError, UncompletedJobError) as error:
                return Ended(job, 1, str(error).strip().splitlines()[-1])
        if self._stopping or state == "CANCELLED":
            return Ended(job, 130, "" if self._stopping else "it was cancelled")
        reason = state.replace("_", " ").lower() or "it vanished from the queue"
        return Ended(job, LOST, f"Slurm says: {reason}; see {held.handle.paths.stderr}")

    def stop(self, *, at_once: bool = False) -> None:
        """Cancel what waits, and ask what runs to save, or kill it."""
        self._stopping = True
        self._tell("--state=PENDING")
        self._tell("--state=RUNNING", f"--signal={'KILL' if at_once else 'TERM'}")

    def _tell(self, *what: str) -> None:
        self._told = [each for each in self._told if each.poll() is None]
        command = ["scancel", "--quiet", f"--name={self._name}", *what]
        self._told.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))

    def close(self) -> None:
        """Nothing to release; a detached array keeps running."""
        for each in self._told:
            each.wait()
