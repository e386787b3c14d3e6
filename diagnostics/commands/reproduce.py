"""`fog reproduce`: train the motivating example in miniature and draw its figures.

The runs form a sweep on this machine: finished ones are skipped and interrupted ones resumed, so
the same command always continues where the last one stopped.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from diagnostics.studies.motivating_example import STUDY
from fog.cli.parser import Parser, integer, pathname
from fog.cli.sweepreport import summary
from fog.errors import UserError
from fog.sweep import checks
from fog.sweep.job import Job
from fog.sweep.local import LocalEngine, cores
from fog.sweep.plan import MOST_SEEDS, Block, Plan
from fog.sweep.sweep import Sweep
from fog.sweep.view import view
from fog.system.children import python
from fog.system.text import plain


def command(argv: Sequence[str]) -> int:
    """Train the five variants of the motivating example, then draw what applies."""
    options = _parse(argv)
    return _train(jobs_of(argv), options.jobs) or _draw(options.out, options.figures)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        "reproduce",
        "Train the five variants of the motivating example in miniature with all probes on, then\n"
        "run the notebooks and write the report. Run the same command again to resume.",
    )
    parser.add_argument("--task", default="cartpole-swingup", help="task [cartpole-swingup]")
    parser.add_argument("--seeds", type=integer, default=2, metavar="N", help="seeds [2]")
    parser.add_argument("--scale", type=float, default=0.02, metavar="X", help="scale [0.02]")
    parser.add_argument("--width", type=integer, default=64, metavar="N", help="width [64]")
    parser.add_argument("--window-steps", type=integer, default=300, metavar="N", help="[300]")
    parser.add_argument("--eval-every", type=integer, default=300, metavar="N", help="[300]")
    parser.add_argument("--eval-episodes", type=integer, default=3, metavar="N", help="[3]")
    parser.add_argument("--jobs", type=integer, default=cores(), metavar="N", help="runs at once")
    parser.add_argument(
        "--out", type=pathname, default=Path("runs/reproduce"), help="[runs/reproduce]"
    )
    parser.add_argument("--figures", type=pathname, default=Path("figures/reproduce"))
    options = parser.parse(argv)
    for name in ("seeds", "jobs"):
        if getattr(options, name) < 1:
            raise UserError(f"--{name}: at least one, got {getattr(options, name)}")
    if options.seeds > MOST_SEEDS:
        raise UserError(f"--seeds: at most {MOST_SEEDS}, got {options.seeds}")
    return options


def jobs_of(argv: Sequence[str]) -> list[Job]:
    """The runs that a command line asks for."""
    options = _parse(argv)
    names = ("width", "window_steps", "eval_every", "eval_episodes")
    settings = {name: getattr(options, name) for name in names}
    block = Block((options.task,), STUDY.variants, tuple(range(options.seeds)))
    plan = Plan("reproduce", (block,), options.scale)
    return plan.jobs({**settings, "probes": ("all",), "out": str(options.out)})


def _train(jobs: list[Job], at_once: int) -> int:
    checks.settled(jobs)
    checks.writable(jobs)
    checks.runnable(jobs)
    outcome = Sweep(jobs, LocalEngine(at_once), view()).run()
    _say(summary(outcome))
    if outcome.exit_code:
        _say("Not all runs have finished; run the same command again to continue")
    return outcome.exit_code


def _draw(runs: Path, figures: Path) -> int:
    _say("Running the notebooks")
    page = figures / "report.html"
    steps = (
        ["figures", "--runs", str(runs), "--out", str(figures)],
        ["report", "--runs", str(runs), "--notebooks", str(figures), "--out", str(page)],
        ["compare", "--runs", str(runs)],
    )
    codes = [subprocess.run(python("-m", "fog", *step)).returncode for step in steps]
    _say(f"\nRuns:    {runs.resolve()}")
    _say(f"Figures: {figures.resolve()}")
    _say(f"Claims:  fog claims --runs {runs}  judges the paper's claims from these runs")
    _say(f"Open:    {page.resolve().as_uri()}")
    return max(codes)


def _say(line: str) -> None:
    sys.stderr.write(plain(line) + "\n")
