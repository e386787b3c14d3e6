"""What commands that read runs share."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from diagnostics.errors import AnalysisError, RunsWarning
from diagnostics.runs.load import Runs, load
from fog.system.text import plain

_MANY = 3
"""Runs with the same problem that are named one by one."""


@contextmanager
def loaded(folders: Sequence[Path], grid: str = "25k") -> Iterator[Runs]:
    """The runs below some folders, without warnings: the command tells `runs.problems` itself.

    Raises:
        AnalysisError: a folder does not exist, none holds a run, or there is no such grid.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunsWarning)
        runs = load(folders, grid=grid)
        if len(runs) == 0:
            where = ", ".join(map(str, folders))
            raise AnalysisError(f"no runs in {where}: train some with `fog train`")
        yield runs


def add_grid(parser: argparse.ArgumentParser) -> None:
    """The flag `--grid` of commands that show best scores."""
    parser.add_argument(
        "--grid",
        default="25k",
        metavar="G",
        help="evaluations among which the best is looked for: every so many steps at scale 1, "
        "or all [25k]",
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
