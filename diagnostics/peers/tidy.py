"""The tidy format of published curves: one CSV for each method, one row for each evaluation.

Columns: `method, task, seed, env_step, value, metric`. `task` is a name of `fog/data/tasks.csv`.
`env_step` counts frames, the raw steps of the simulator: a method with action repeat 2 made half as
many decisions. `metric` is `return`, or `success` (share of episodes) on Meta-World. `seed` is the
source's label, or the column where the source is an array. Values are as published: not smoothed,
not averaged.

`peers.json` beside the tables gives their version and the source of each task of each method.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.csv

from diagnostics.errors import AnalysisError, unknown
from diagnostics.paper import tables as paper

COLUMNS = ("method", "task", "seed", "env_step", "value", "metric")
KEY = ["method", "task", "seed", "env_step"]
PROVENANCE = "peers.json"
VERSION = 1
OTHERS = ("summary.csv",)
"""Other tables that may lie beside the tidy ones."""

_TYPES = {
    "method": pyarrow.string(),
    "task": pyarrow.string(),
    "seed": pyarrow.int64(),
    "env_step": pyarrow.int64(),
    "value": pyarrow.float64(),
    "metric": pyarrow.string(),
}
_POINTERS = (b"version https://git-lfs.github.com/", b"/annex/objects/", b"../.git/annex/")


def tables(folder: Path) -> list[Path]:
    """The tidy tables of a folder, by name; none if it holds none."""
    return [path for path in sorted(folder.glob("*.csv")) if path.name not in OTHERS]


def refuse_pointer(path: Path) -> None:
    """Raise `AnalysisError` if a file only names data that was not fetched."""
    try:
        with path.open("rb") as file:
            start = file.read(100)
    except OSError as error:
        raise AnalysisError(f"cannot read {path}: {error.strerror}") from None
    if start.startswith(_POINTERS):
        how = "git annex get" if b"annex" in start else "git lfs pull"
        raise AnalysisError(f"{path} is a pointer, not data: run `{how}` in its checkout")


def is_tidy(path: Path) -> bool:
    """Whether a CSV file has the columns of the tidy form."""
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline().strip().split(",") == list(COLUMNS)
    except (OSError, UnicodeDecodeError):
        return False


def read(path: Path) -> pd.DataFrame:
    """One tidy table, checked."""
    return check(parse(path), path)


def parse(path: Path) -> pd.DataFrame:
    """One tidy table as it is in its file."""
    refuse_pointer(path)
    if not is_tidy(path):
        raise AnalysisError(
            f"{path} is not in the tidy form: its first line must be {','.join(COLUMNS)}; "
            "`fog import --from CHECKOUT` writes it from official files"
        )
    try:
        options = pyarrow.csv.ConvertOptions(column_types=_TYPES, null_values=["", "nan", "NaN"])
        found = pyarrow.csv.read_csv(path, convert_options=options)
    except (OSError, pyarrow.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise AnalysisError(f"cannot read {path}: {reason}") from None
    return found.to_pandas()


def check(table: pd.DataFrame, where: Path) -> pd.DataFrame:
    """The table itself, if every row is one evaluation of a task of the paper."""
    named = table[["method", "task", "metric"]]
    if table[[*KEY, "metric"]].isna().any(axis=None) or (named == "").any(axis=None):
        raise AnalysisError(f"{where}: a row lacks its method, task, seed, env_step or metric")
    tasks = paper.tasks().set_index("name")
    for task in table["task"].unique():
        if task not in tasks.index:
            raise unknown(f"task in {where}", task, tasks.index)
    wanted = table["task"].map(tasks["metric"])
    wrong = table[table["metric"] != wanted]
    if len(wrong):
        row = wrong.iloc[0]
        raise AnalysisError(
            f"{where}: metric {row['metric']!r} for {row['task']}, expected {wanted[row.name]!r}"
        )
    if (table["env_step"] < 0).any():
        raise AnalysisError(f"{where}: env_step below 0; it counts frames from the start")
    return table


def provenance(folder: Path) -> dict[str, Any]:
    """What `fog import` noted about a folder, by method; empty if the folder has no such note."""
    path = folder / PROVENANCE
    if not path.exists():
        return {}
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
        version, methods = noted["version"], dict(noted["methods"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise AnalysisError(f"cannot read {path}: import the peers again") from None
    if version != VERSION:
        raise AnalysisError(
            f"{path} has version {version}, but this program reads {VERSION}: "
            "import the peers again"
        )
    return methods
