"""`fog reproduce`: show primacy bias, its harm, and what two cures do, from runs of your own.

The runs form a sweep on this machine: finished ones are skipped and interrupted ones resumed, so
the same command always continues where the last one stopped.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from diagnostics.commands.loading import loaded
from diagnostics.diagnosis.calibration import Calibration
from diagnostics.diagnosis.verdict import diagnoses
from diagnostics.studies.per_run import late_return
from diagnostics.studies.priming import DEMONSTRATION, HIGHEST
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

_PROBES = ("critic_loss", "sample_counts", "warmstart", "plasticity", "srank", "norms", "dormancy")
_NOTEBOOKS = ("priming", "run_card", "calibration", "theorem_1", "theorem_2")
_SETTINGS = {
    "width": 64,
    "batch_size": 128,
    "warmup_steps": 200,
    "steps": 20_000,
    "window_steps": 2_000,
    "eval_every": 2_000,
    "eval_episodes": 5,
    "probes": _PROBES,
}


def command(argv: Sequence[str]) -> int:
    """Train an unprimed agent, a primed one and two cures; then draw and tell what was seen."""
    options = _parse(argv)
    jobs = jobs_of(argv)
    code = _train(jobs, options.jobs) or _draw(options.out, options.figures, _sufferer(jobs))
    if code == 0:
        sys.stdout.writelines(f"{line}\n" for line in seen(options.out))
    return code


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        "reproduce",
        "Show primacy bias: train SAC unprimed, primed with 100,000 updates on its first 200\n"
        "transitions, and primed with an early reset or LayerNorm; then draw, diagnose\n"
        "and tell what was seen. Run the same command again to resume.",
    )
    parser.add_argument("--task", default="HalfCheetah-v4", help="task [HalfCheetah-v4]")
    parser.add_argument("--seeds", type=integer, default=1, metavar="N", help="seeds [1]")
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
    seeds = tuple(range(options.seeds))
    blocks = tuple(
        Block((options.task,), (variant,), seeds, {**settings, "out": str(options.out / folder)})
        for folder, variant, settings in DEMONSTRATION.values()
    )
    return Plan("reproduce", blocks, scale=0.02).jobs(_SETTINGS)


def seen(out: Path) -> Iterable[str]:
    """What the runs show, in words."""
    calibration = Calibration.read()
    yield f"\nPriming: {HIGHEST:,} updates on the first 200 transitions, before training goes on."
    seeds = 1
    for name, (folder, variant, _) in DEMONSTRATION.items():
        with loaded([out / folder]) as runs:
            own = runs.select(variant=variant)
            (found,) = diagnoses(own, calibration, every=False)
            returns, seeds = late_return(own), len(own)
        yield f"{name}: late return {returns.mean():,.0f}; {found.verdict} of primacy bias."
    yield "Late return: mean of the evaluations in the last fifth of training."
    if seeds == 1:
        yield "One seed each: look at the size of the differences, not at their last digits."


def _train(jobs: list[Job], at_once: int) -> int:
    checks.settled(jobs)
    checks.writable(jobs)
    checks.runnable(jobs)
    outcome = Sweep(jobs, LocalEngine(at_once), view()).run()
    _say(summary(outcome))
    if outcome.exit_code:
        _say("Not all runs have finished; run the same command again to continue")
    return outcome.exit_code


def _sufferer(jobs: list[Job]) -> str:
    """The run to look at closely, by its path below --out: primed, and without a cure."""
    first = next(job for job in jobs if job.config.lifecycle.priming_updates)
    return str(Path(*first.directory.parts[-4:]))


def _draw(runs: Path, figures: Path, card: str) -> int:
    _say("Running the notebooks")
    page = figures / "report.html"
    shown = ("-p", "run", card, "--only", *_NOTEBOOKS)
    steps = (
        ["figures", "--runs", str(runs), "--out", str(figures), *shown],
        ["report", "--runs", str(runs), "--notebooks", str(figures), "--out", str(page)],
        ["diagnose", str(runs)],
    )
    codes = [subprocess.run(python("-m", "fog", *step)).returncode for step in steps]
    _say(f"\nRuns:    {runs.resolve()}")
    _say(f"Figures: {figures.resolve()}")
    _say(f"Open:    {page.resolve().as_uri()}")
    return max(codes)


def _say(line: str) -> None:
    sys.stderr.write(plain(line) + "\n")
