"""What commands that read runs share."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from diagnostics.errors import AnalysisError, RunsWarning
from diagnostics.metrics.scores import PAPER_GRID
from diagnostics.peers.load import Peers, load_peers
from diagnostics.runs.load import Runs, load
from diagnostics.runs.published import in_frames, peer_runs
from fog.cli.parser import pathname
from fog.system.text import plain

_MANY = 3
"""Runs with the same problem that are named one by one."""


@contextmanager
def loaded(
    folders: Sequence[Path],
    grid: str | None = None,
    peers: Path | None = None,
    *,
    few: bool = False,
) -> Iterator[Runs]:
    """The runs below some folders, without warnings: the command prints `runs.problems` itself.

    Args:
        folders: where they are.
        grid: grid of evaluations for best scores; None takes 25k, or with `peers` the coarsest of
            theirs.
        peers: a folder of published curves to set beside them, on the same tasks.
        few: only the main ones of the published methods.

    Raises:
        AnalysisError: a folder does not exist, none holds a run, or there is no such grid.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunsWarning)
        runs = load(folders, grid=grid or PAPER_GRID.name)
        if len(runs) == 0:
            where = ", ".join(map(str, folders))
            raise AnalysisError(f"no runs in {where}: train some with `fog train`")
        try:
            yield runs if peers is None else _beside(runs, peers, grid, few)
        except AnalysisError:
            # A run that is damaged may be why the command cannot go on.
            sys.stderr.writelines(problem_lines(runs))
            raise


def published(folder: Path) -> Peers:
    """The published curves of a folder; prints what had to be left out.

    Raises:
        AnalysisError: as `load_peers`.
    """
    found = load_peers(folder)
    sys.stderr.writelines(plain(f"problem: {problem}") + "\n" for problem in found.problems)
    return found


def _beside(runs: Runs, folder: Path, grid: str | None, few: bool) -> Runs:
    """Our runs, their steps in frames, and the published ones of the same tasks."""
    # Here, because it takes scipy, half a second that a comparison without peers need not wait for.
    from diagnostics.peers.scores import common_grid

    known = published(folder)
    tasks = set(runs.identity["task"])
    chosen = known.select(known.main() if few else None, tasks)
    if not chosen.methods:
        raise AnalysisError(f"{folder} has no published runs of {', '.join(sorted(tasks))}")
    shared_grid = common_grid(chosen) if grid is None else runs.grid
    return Runs([*map(in_frames, runs.files), *peer_runs(chosen)], shared_grid)


def add_grid(parser: argparse.ArgumentParser) -> None:
    """The flag `--grid` of commands that show best scores."""
    parser.add_argument(
        "--grid",
        default=None,
        metavar="G",
        help="grid on which to look for the best evaluation: an interval in steps at scale 1, "
        "or all [25k; with --peers the coarsest of theirs]",
    )


def add_peers(parser: argparse.ArgumentParser) -> None:
    """The flag `--peers` of commands that set published curves beside runs."""
    parser.add_argument(
        "--peers",
        type=pathname,
        metavar="DIR",
        help="published curves to set beside the runs: a folder written by `fog import`",
    )


def problem_lines(runs: Runs) -> list[str]:
    """What is wrong with the runs, one line each; one for all if many have the same problem."""
    lines = []
    for problem, rows in runs.problems.groupby("problem", sort=False):
        where = list(rows["run"])
        if len(where) > _MANY:
            where = [f"{where[0]} and {len(where) - 1} more"]
        lines += [plain(f"problem: {run}: {problem}") + "\n" for run in where]
    return lines
