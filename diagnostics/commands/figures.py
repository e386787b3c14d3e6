"""`fog figures`: draw every figure and table from run directories, with papermill."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from diagnostics.commands.loading import add_peers, published
from diagnostics.errors import AnalysisError
from diagnostics.report.execution import Outcome, execute_all
from diagnostics.report.notebooks import Notebook, assign, available, choose
from diagnostics.runs.directories import discover
from fog.cli.parser import Parser, pathname


def command(argv: Sequence[str]) -> int:
    """Execute the chosen notebooks; 1 if any of them failed."""
    options = _options(argv)
    if options.list:
        for name, path in available().items():
            _say(f"{name}: {', '.join(Notebook.open(path).parameters)}")
        return 0
    notebooks = choose(options.only)
    given: dict[str, str] = dict(options.parameter)
    for name in ("runs", "out", "peers"):
        if name in given:
            raise AnalysisError(f"parameter {name!r} is set by --{name}")
    values = assign(notebooks, given)
    if options.peers is not None:
        _check_peers(options.peers, notebooks)
    # A notebook whose own default is None can do without runs.
    needing = [notebook for notebook in notebooks if notebook.parameters.get("runs") is not None]
    has_runs = options.runs.is_dir() and next(discover(options.runs), None) is not None
    if needing and not has_runs:
        raise _no_runs(options.runs, needing, notebooks)
    for notebook in notebooks:
        # Absolute, because a notebook's kernel may run in another directory.
        if "runs" in notebook.parameters and has_runs:
            values[notebook.name]["runs"] = str(options.runs.absolute())
        if "peers" in notebook.parameters and options.peers is not None:
            values[notebook.name]["peers"] = str(options.peers.absolute())
        if "out" in notebook.parameters:
            values[notebook.name]["out"] = str(options.out.absolute())
    try:
        outcomes = execute_all(
            notebooks,
            options.out,
            values,
            started=lambda position, notebook: _say(
                f"[{position + 1}/{len(notebooks)}] {notebook.name} ... ", end=""
            ),
            ended=_report,
        )
    except OSError as error:
        raise AnalysisError(f"cannot write to {options.out}: {error}") from None
    failed = [outcome.name for outcome in outcomes if outcome.error is not None]
    _say(f"Figures and executed notebooks are in {options.out.absolute()}")
    if failed:
        _say(f"{len(failed)} of {len(outcomes)} notebooks failed: {', '.join(failed)}")
    return 1 if failed else 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser("figures", "Run the notebooks and keep their figures and executed copies.")
    parser.add_argument("--runs", type=pathname, default=Path("runs"), help="folder of runs [runs]")
    parser.add_argument(
        "--out", type=pathname, default=Path("figures"), help="folder for the figures [figures]"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="notebooks to run: names, or paths to your own [all]",
    )
    parser.add_argument(
        "-p",
        "--parameter",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="set a parameter in every chosen notebook that has it; may be repeated",
    )
    add_peers(parser)
    parser.add_argument("--list", action="store_true", help="list notebooks and their parameters")
    return parser.parse(argv)


def _check_peers(peers: Path, chosen: Sequence[Notebook]) -> None:
    """Report mistakes before the first notebook runs."""
    if not any("peers" in notebook.parameters for notebook in chosen):
        names = ", ".join(notebook.name for notebook in chosen)
        raise AnalysisError(f"--peers: {names} draws no published curves; main_results does")
    published(peers)


def _no_runs(runs: Path, needing: Sequence[Notebook], chosen: Sequence[Notebook]) -> AnalysisError:
    what = "holds no runs" if runs.is_dir() else "does not exist"
    free = [notebook.name for notebook in chosen if notebook not in needing]
    verb = "needs" if len(free) == 1 else "need"
    hint = f"; --only {' '.join(free)} {verb} none" if free else ""
    return AnalysisError(
        f"{runs} {what}: train some with `fog train`, or point --runs at them{hint}"
    )


def _report(outcome: Outcome) -> None:
    if outcome.error is None:
        _say(f"{outcome.seconds:.1f} s")
    else:
        _say(f"failed after {outcome.seconds:.1f} s: {outcome.error}")


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()
