"""The numbers printed in the paper, and its normalised-score table recomputed from them.

Printed are means and population standard deviations over three seeds, under the rule "maximum of
each seed's evaluations strictly before T" (`diagnostics.metrics.scores`). The
files are those of `fog`; they are read without importing it.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from diagnostics.errors import AnalysisError

ALGORITHMS = ("FoG", "TD-MPC2", "SimBa", "BRO")
SEEDS = 3
TOTAL = "Total"
_ROUNDING = 0.005
"""Every number is printed to two decimals, so it may be off by this much."""


def data_file(name: str) -> Path:
    """A data file of the trainer, found without importing it."""
    spec = importlib.util.find_spec("fog")
    homes = spec.submodule_search_locations if spec is not None else None
    for home in homes or ():
        path = Path(home) / "data" / name
        if path.exists():
            return path
    raise AnalysisError(f"{name} is missing: reinstall fog-diagnostics")


@cache
def _tasks() -> pd.DataFrame:
    return pd.read_csv(data_file("tasks.csv"))


def tasks() -> pd.DataFrame:
    """The paper's 41 tasks in its order: `name`, `group`, `metric`, `normaliser`, `steps`, ..."""
    return _tasks().copy()


@cache
def _cells() -> pd.DataFrame:
    return pd.read_csv(data_file("paper_tables.csv"))


def printed() -> pd.DataFrame:
    """The per-task tables: one row per task and algorithm.

    Returns:
        Columns `task` (our name), `group`, `metric`, `normaliser`, `steps`, `algorithm`, `mean`,
        `std` and `seeds`, in the order of the paper's tables.
    """
    table = _tasks().merge(
        _cells(),
        left_on=["paper_table", "paper_row"],
        right_on=["table", "task"],
        how="left",
        validate="one_to_many",
    )
    table = table.drop(columns=["table", "task", "paper_table", "paper_row", "env_id"])
    return table.rename(columns={"name": "task"}).assign(seeds=SEEDS)


def printed_normalised() -> pd.DataFrame:
    """The normalised-score table: columns `group` (or Total), `algorithm`, `mean`, `std`."""
    table = _cells()[_cells()["table"] == "normalized"].drop(columns="table")
    names = _tasks().drop_duplicates("group").set_index("paper_table")["group"].to_dict()
    # The normalised table writes DMC-Easy where the file names the per-task table DMC_EASY.
    names |= {group: group for group in names.values()} | {TOTAL: TOTAL}
    return table.assign(task=table["task"].map(names)).rename(columns={"task": "group"})


def best_run_bounds() -> pd.DataFrame:
    """Bounds on the best single run of each task over all four algorithms.

    Only the mean m and population deviation s of three seeds are printed. Their maximum then lies
    between m + s / sqrt(2) (two equal above, one below) and m + s * sqrt(2) (one above, two equal
    below). Meta-World is divided by 1, the largest success rate there is.

    Returns:
        Columns `low` and `high`, by task.
    """
    table = printed()
    table["low"] = table["mean"] + table["std"] / np.sqrt(2)
    table["high"] = table["mean"] + table["std"] * np.sqrt(2)
    bounds = table.groupby("task", sort=False)[["low", "high"]].max()
    rates = table.groupby("task", sort=False)["metric"].first() == "success"
    bounds.loc[rates] = 1.0
    return bounds


def recomputed_normalised() -> pd.DataFrame:
    """The normalised-score table from the per-task tables, beside what is printed.

    A task's score is its mean over the task's best single run; a group's is the mean over its
    tasks, the total the mean over all 41 tasks (not over groups); the deviation is
    sqrt(sum of s_i^2) / n of the normalised deviations s_i. The best runs are known within bounds
    only, and cells to two decimals, so every entry is a bracket.

    Returns:
        Columns `group`, `algorithm`, `mean` and `std` as printed, `mean_low`, `mean_high`,
        `std_low`, `std_high`, and `consistent`: printed values lie in their brackets up to
        rounding.
    """
    table = printed().merge(best_run_bounds(), left_on="task", right_index=True)
    parts = [table, table.assign(group=TOTAL)]
    rows = []
    for (group, algorithm), cells in pd.concat(parts).groupby(["group", "algorithm"], sort=False):
        # The larger the best run, the smaller every share of it.
        row = {"group": group, "algorithm": algorithm}
        for end, bound, error in (("low", "high", -_ROUNDING), ("high", "low", _ROUNDING)):
            shares = (cells["mean"] + error) / cells[bound]
            deviations = (cells["std"] + error).clip(lower=0) / cells[bound]
            row[f"mean_{end}"] = shares.mean()
            row[f"std_{end}"] = np.sqrt((deviations**2).sum()) / len(cells)
        rows.append(row)
    merged = printed_normalised().merge(pd.DataFrame(rows), on=["group", "algorithm"])
    merged["consistent"] = True
    for name in ("mean", "std"):
        merged["consistent"] &= (merged[name] >= merged[f"{name}_low"] - _ROUNDING) & (
            merged[name] <= merged[f"{name}_high"] + _ROUNDING
        )
    return merged


def fixed_normalised() -> pd.DataFrame:
    """The same table under the fixed normalisers of the suites: `group`, `algorithm`, `mean`.

    These numbers are not in the paper. They do not change when a better run is added.
    """
    table = printed()
    table["score"] = table["mean"] / table["normaliser"]
    both = pd.concat([table, table.assign(group=TOTAL)])
    means = both.groupby(["group", "algorithm"], sort=False)["score"].mean()
    return means.rename("mean").reset_index()
