"""`fog sweep`: skip, resume or start many runs, depending on their directories."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence

from fog.cli.parser import Parser, add_settings, integer, pathname, settings
from fog.errors import ConfigError, UserError
from fog.settings.config import Config
from fog.sweep import checks, engine, plan, planfile
from fog.sweep.job import Job
from fog.sweep.plan import Block, Plan
from fog.system.text import plain

_SUMMARY = """Train every variant on every task with every seed, each run in its own process.

Finished runs are skipped and interrupted ones resumed, so the same command always continues where
the last one stopped. Ctrl-C saves all runs. A --plan file holds larger experiments (docs/sweeps.md
explains its format); --tasks, --variants and --seeds then select part of it."""

_EPILOG = """Every setting of `fog train` is a flag here too and applies to every run, for example
--width 64 --scale 0.02 --probes all --out runs/first; `fog train --help` lists them.
`fog sweep --engine ray --help` shows the flags of an engine.

  fog sweep --tasks cartpole-swingup --variants sac fog --seeds 0-2 --scale 0.02 --width 64
  fog sweep --plan plans/motivating_example.yaml --scale 0.03 --dry-run"""

_GRID = ("task", "variant", "seed")


def _parser(engine_name: str) -> Parser:
    usage = "fog sweep --tasks T .. [--variants V ..] [--seeds N ..] [options]"
    parser = Parser("sweep", _SUMMARY, usage=usage, epilog=_EPILOG)
    which = parser.add_argument_group("which runs")
    which.add_argument(
        "--plan", metavar="FILE", type=pathname, help="YAML file of runs, or the name of a plan"
    )
    which.add_argument(
        "--tasks", nargs="+", metavar="T", help="task names, or suite:NAME such as suite:dmc-hard"
    )
    which.add_argument("--variants", nargs="+", metavar="V", help="variant names [fog]")
    which.add_argument("--seeds", nargs="+", metavar="N", help="seeds such as 0 1 2 or 0-4 [0]")
    how = parser.add_argument_group("how")
    how.add_argument("--engine", default="local", help="local, ray or slurm [local]")
    how.add_argument(
        "--jobs", type=integer, metavar="N", help="runs at once [local: cores / --threads]"
    )
    how.add_argument(
        "--dry-run", action="store_true", help="show runs, updates, time and memory, then exit"
    )
    how.add_argument("--list", action="store_true", help="show the command of every run, then exit")
    engine.load(engine_name).add_options(parser)
    add_settings(parser, Config(), skip=_GRID, hidden=True)
    return parser


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse in two steps: the engine decides which flags exist."""
    first = Parser("sweep", "", add_help=False)
    first.add_argument("--engine", default="local")
    chosen, _ = first.parse_known_args(argv)
    options = _parser(chosen.engine).parse(argv)
    if options.jobs is not None and options.jobs < 1:
        raise UserError(f"--jobs: at least one run at a time, got {options.jobs}")
    return options


def _plan(options: argparse.Namespace) -> Plan:
    tasks = plan.task_names(_split(options.tasks or []))
    variants = plan.variant_names(_split(options.variants or []))
    seeds = plan.seed_numbers(_split(options.seeds)) if options.seeds else ()
    if options.plan:
        return planfile.read(options.plan).only(tasks, variants, seeds)
    if not tasks:
        raise ConfigError(
            "nothing to run: add --tasks, for example --tasks cartpole-swingup --variants sac fog, "
            "or --plan FILE"
        )
    return Plan("sweep", (Block(tasks, variants or ("fog",), seeds or (0,)),))


def _split(items: Sequence[str]) -> list[str]:
    return [part for item in items for part in item.split(",") if part]


def _jobs(options: argparse.Namespace) -> list[Job]:
    """The runs that a command line asks for, all resolved and so validated."""
    chosen = _plan(options)
    overrides = settings(options)
    scale = overrides.pop("scale", chosen.scale)
    return chosen.jobs(overrides, scale=scale)


def sweep(argv: Sequence[str]) -> int:
    """Run a sweep, or show what it would run."""
    options = _parse(argv)
    jobs = _jobs(options)
    if options.list:
        print("\n".join(shlex.join(["fog", "train", *job.flags]) for job in jobs))
        return 0
    checks.settled(jobs)
    if options.dry_run:
        _describe(jobs, options)
        return 0
    checks.writable(jobs)
    if options.engine == "local":
        checks.runnable(jobs)
    carrier = engine.load(options.engine).make(options, jobs)
    from fog.cli import sweepreport
    from fog.sweep.sweep import Sweep
    from fog.sweep.view import view

    outcome = Sweep(jobs, carrier, view()).run()
    print(sweepreport.summary(outcome), flush=True)
    if outcome.exit_code:
        _say(f"Continue with: {shlex.join(['fog', 'sweep', *argv])}")
    return outcome.exit_code


def _describe(jobs: list[Job], options: argparse.Namespace) -> None:
    from fog.cli import sweepreport
    from fog.sweep import local

    at_once = local.at_once(options, jobs)
    print(sweepreport.runs(jobs), flush=True)
    for line in checks.absent_suites(jobs):
        print(f"note: {line}", flush=True)
    from fog.cost import estimate

    costs = estimate([job.config for job in jobs], at_once, say=_say)
    print("\n" + sweepreport.cost(costs, jobs, at_once))


def _say(line: str) -> None:
    print(plain(line), file=sys.stderr)
