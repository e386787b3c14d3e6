"""What the analysis reads of runs, for comparison."""

from __future__ import annotations

import warnings
from pathlib import Path

import pandas as pd

import diagnostics
from diagnostics.errors import RunsWarning
from diagnostics.runs.load import IDENTITY

TABLES = ("evals", "train", "events", "dormancy", "sample_counts", "runs")
_OF_THE_COPY = {*IDENTITY, "problems", "idle_hours", "out"}

Frames = dict[str, dict[str, pd.DataFrame]]
"""Tables by name, by run below the folder."""


def frames(home: Path) -> tuple[Frames, dict[str, list[str]]]:
    """Every table of every run below a folder, and the problems of each run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunsWarning)
        runs = diagnostics.load(home)
        tables = {name: getattr(runs, name) for name in TABLES}
    found: Frames = {}
    for name, table in tables.items():
        found[name] = {
            str(Path(run).relative_to(home)): _comparable(rows)
            for run, rows in table.groupby("run", sort=False)
        }
    problems: dict[str, list[str]] = {}
    for row in runs.problems.itertuples():
        problems.setdefault(str(Path(row.run).relative_to(home)), []).append(str(row.problem))
    return found, problems


def _comparable(rows: pd.DataFrame) -> pd.DataFrame:
    # A label also tells a run from others, and changes with their settings.
    kept = rows.drop(columns=[name for name in rows if name in _OF_THE_COPY])
    return kept.assign(scale=rows["scale"]).reset_index(drop=True)


def differences(good: Path, other: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """By run, the tables in which it differs between two folders; and the problems of the other.

    Args:
        good: runs as they should be.
        other: the same runs, after an attack.
    """
    expected, _ = frames(good)
    found, problems = frames(other)
    changed: dict[str, list[str]] = {}
    for name in TABLES:
        for run in {*expected[name], *found[name]}:
            first, second = expected[name].get(run), found[name].get(run)
            if first is None or second is None or not _equal(first, second):
                changed.setdefault(run, []).append(name)
    return changed, problems


def _equal(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    if not set(first) <= set(second):
        return False
    # A setting that only one of two runs has is a column of both, with NaN in place of None.
    sides = [side[list(first)].astype(object) for side in (first, second)]
    sides = [side.where(side.notna(), None) for side in sides]
    try:
        pd.testing.assert_frame_equal(*sides)
    except AssertionError:
        return False
    return True
