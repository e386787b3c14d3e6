"""`fog reproduce`: the motivating example in miniature, from training to figures, in one command.

Runs are started as `fog train` processes, one thread each, as many at once as there are cores.
Finished ones are skipped and interrupted ones resumed, so the same command always goes on where
the last one stopped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fog import tasks
from fog.cli.parser import Parser, integer
from fog.errors import UserError

VARIANTS = ("sac", "sac-reset", "per-sac", "balanced-sac", "expanded-sac")
_POLL_SECONDS = 1.0
_SAY_SECONDS = 20.0


@dataclass(frozen=True)
class Job:
    """One run of the miniature."""

    task: str
    variant: str
    seed: int
    out: Path
    settings: tuple[str, ...]

    @property
    def directory(self) -> Path:
        """The run directory that `fog train` makes."""
        return self.out / tasks.get(self.task).slug / self.variant / f"seed{self.seed}"

    def status(self) -> str:
        """The run's status, `new` if it was never started."""
        try:
            manifest = json.loads((self.directory / "manifest.json").read_text())
        except (OSError, ValueError):
            return "started" if (self.directory / "config.yaml").exists() else "new"
        return str(manifest.get("status", "started"))

    def env_step(self) -> int:
        """How far the run has come, from the last whole row of its training table."""
        try:
            rows = (self.directory / "train.csv").read_text().splitlines()
            return int(rows[-1].partition(",")[0])
        except (OSError, ValueError, IndexError):
            return 0

    def start(self) -> subprocess.Popen[bytes]:
        """Start or resume it, with its output in a log beside its tables."""
        command = [sys.executable, "-m", "fog", "train", "--task", self.task]
        command += ["--variant", self.variant, "--seed", str(self.seed), "--out", str(self.out)]
        command += [*self.settings, *(["--resume"] if self.status() != "new" else [])]
        self.directory.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with (self.directory / "log.txt").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


def command(argv: Sequence[str]) -> int:
    """Train the five variants of the motivating example, then draw what applies."""
    parser = Parser(
        "reproduce",
        "Train the five variants of the motivating example in miniature with all probes on, then\n"
        "run the notebooks and write the report. The same command resumes what was interrupted.",
    )
    parser.add_argument("--task", default="cartpole-swingup", help="task [cartpole-swingup]")
    parser.add_argument("--seeds", type=integer, default=1, metavar="N", help="seeds [1]")
    parser.add_argument("--scale", type=float, default=0.02, metavar="X", help="scale [0.02]")
    parser.add_argument("--width", type=integer, default=64, metavar="N", help="width [64]")
    parser.add_argument("--window-steps", type=integer, default=300, metavar="N", help="[300]")
    parser.add_argument("--eval-every", type=integer, default=150, metavar="N", help="[150]")
    parser.add_argument("--eval-episodes", type=integer, default=3, metavar="N", help="[3]")
    parser.add_argument("--jobs", type=integer, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--out", type=Path, default=Path("runs/reproduce"), help="[runs/reproduce]")
    parser.add_argument("--figures", type=Path, default=Path("figures/reproduce"))
    options = parser.parse(argv)
    settings = (
        *("--scale", str(options.scale), "--width", str(options.width), "--probes", "all"),
        *("--window-steps", str(options.window_steps)),
        *("--eval-every", str(options.eval_every), "--eval-episodes", str(options.eval_episodes)),
    )
    jobs = [
        Job(options.task, variant, seed, options.out, settings)
        for seed in range(options.seeds)
        for variant in VARIANTS
    ]
    _train(jobs, options.jobs)
    return _draw(options.out, options.figures)


def _train(jobs: list[Job], at_once: int) -> None:
    waiting = [job for job in jobs if job.status() not in ("finished", "diverged")]
    _say(f"{len(jobs)} runs, {len(jobs) - len(waiting)} finished already, {at_once} at a time")
    running: dict[Job, subprocess.Popen[bytes]] = {}
    said = began = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                job = waiting.pop(0)
                running[job] = job.start()
                _say(f"  started {job.variant} seed {job.seed}")
            time.sleep(_POLL_SECONDS)
            for job in [job for job, process in running.items() if process.poll() is not None]:
                _check(job, running.pop(job).returncode)
            if time.monotonic() - said > _SAY_SECONDS:
                said = time.monotonic()
                steps = ", ".join(f"{job.variant} at step {job.env_step()}" for job in running)
                _say(f"  {said - began:.0f} s: {steps}; {len(waiting)} waiting")
    except BaseException:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
        raise


def _check(job: Job, code: int) -> None:
    # 3 is divergence, which is a result and not a failure.
    if code not in (0, 3):
        log = job.directory / "log.txt"
        raise UserError(f"{job.variant} seed {job.seed} failed (exit code {code}): see {log}")
    _say(f"  {job.status()} {job.variant} seed {job.seed}")


def _draw(runs: Path, figures: Path) -> int:
    _say("Running the notebooks")
    page = figures / "report.html"
    steps = (
        ["figures", "--runs", str(runs), "--out", str(figures)],
        ["report", "--runs", str(runs), "--notebooks", str(figures), "--out", str(page)],
        ["compare", "--runs", str(runs)],
    )
    codes = [subprocess.run([sys.executable, "-m", "fog", *step]).returncode for step in steps]
    _say(f"\nRuns:    {runs.resolve()}")
    _say(f"Figures: {figures.resolve()}")
    _say(f"Report:  {page.resolve()}")
    return max(codes)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
