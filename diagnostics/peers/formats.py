"""Readers of the official result files, one per format, into rows of the tidy format.

- `read_long`: one CSV for many tasks, `exp_name, env_name, seed, metric, env_step, value`
  (SimBa, SimBaV2, XQC).
- `read_by_task`: a folder of `<task>.csv`, `step, reward or success, seed` (TD-MPC2).
- `read_arrays`: a zip of `<folder>/<task>.npy`, shape (evaluations, seeds), 25k steps apart (BRO).
- `read_by_seed`: a folder of `<task>/<seed>.txt`, `step value` in each line (Nikishin et al.).

All of them count frames. Tasks outside the paper's 41 are left out, and named to the caller.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from diagnostics.errors import AnalysisError
from diagnostics.paper import tables as paper
from diagnostics.peers import tidy

BRO_INTERVAL = 25_000
"""Frames between BRO's evaluations; its arrays have no step axis."""

_LONG = {"env_name", "seed", "metric", "env_step", "value"}
_METRICS = {"avg_return": "return", "avg_success": "success"}
_VERSION = "another version of the file than this program knows"
_MOST_BYTES = 64 * 2**20
"""Of one array in a zip, unpacked; BRO's have 3 kB."""


class Found(NamedTuple):
    """What a file held: tidy rows without their method, tasks that are not the paper's, remarks."""

    rows: pd.DataFrame
    outside: list[str]
    notes: list[str]


@cache
def _known() -> dict[str, str]:
    """Our task names by the ways in which others spell them."""
    found = {}
    for task in paper.tasks().itertuples():
        found[_spelling(task.name)] = task.name
        found[_spelling(task.env_id)] = task.name
        if task.suite == "metaworld":
            found[f"{task.env_id}-v2-goal-observable"] = task.name
    return found


def _spelling(name: str) -> str:
    return name.lower().replace("_", "-")


def our_task(name: str) -> str | None:
    """Our name of a task, from another's such as `h1_pole_v0`; None if it is not the paper's."""
    return _known().get(_spelling(name))


def read_long(path: Path) -> Found:
    """One CSV with a row per evaluation, for all tasks."""
    table = _csv(path, _LONG)
    names = {str(name): our_task(str(name)) for name in table["env_name"].unique()}
    table["task"] = table["env_name"].astype("str").map(names)
    table["metric"] = table["metric"].map(_METRICS)
    wanted = table["task"].map(paper.tasks().set_index("name")["metric"])
    kept = table[table["task"].notna() & (table["metric"] == wanted)]
    outside = sorted(name for name, task in names.items() if task is None)
    return _rows(kept, path)._replace(outside=outside)


def read_by_task(folder: Path) -> Found:
    """A folder with one CSV per task."""
    parts, outside = [], []
    for path in sorted(folder.glob("*.csv")):
        task = our_task(path.stem)
        if task is None:
            outside.append(path.stem)
            continue
        metric = "success" if task.startswith("mw-") else "return"
        column = "success" if metric == "success" else "reward"
        table = _csv(path, {"step", column, "seed"})
        table = table.rename(columns={"step": "env_step", column: "value"})
        parts.append(_rows(table.assign(task=task, metric=metric), path))
    notes = [note for part in parts for note in part.notes]
    return Found(_joined([part.rows for part in parts], folder), outside, notes)


def read_arrays(archive: Path, folder: str) -> Found:
    """One folder of a zip of arrays of shape (evaluations, seeds)."""
    tidy.refuse_pointer(archive)
    parts, outside = [], []
    try:
        with zipfile.ZipFile(archive) as files:
            for name in sorted(files.namelist()):
                path = Path(name)
                if path.suffix != ".npy" or path.parent.name != folder or "__MACOSX" in path.parts:
                    continue
                task = our_task(path.stem)
                if task is None:
                    outside.append(path.stem)
                    continue
                if files.getinfo(name).file_size > _MOST_BYTES:
                    raise AnalysisError(f"{archive}: {name} is larger than an array of curves")
                # Without pickles: an array can then hold numbers only.
                values = np.load(io.BytesIO(files.read(name)), allow_pickle=False)
                parts.append(_from_array(values, task, f"{archive}: {name}"))
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        raise AnalysisError(f"cannot read {archive}: {error}") from None
    return Found(_joined(parts, archive), outside, [])


def _from_array(values: NDArray[np.float64], task: str, where: str) -> pd.DataFrame:
    if values.ndim != 2 or values.dtype.kind != "f":
        raise AnalysisError(
            f"{where} has shape {values.shape}, expected (evaluations, seeds): {_VERSION}"
        )
    evaluations, seeds = values.shape
    return pd.DataFrame(
        {
            "task": task,
            "seed": np.tile(np.arange(seeds), evaluations),
            "env_step": np.repeat(BRO_INTERVAL * np.arange(1, evaluations + 1), seeds),
            "value": values.reshape(-1),
            "metric": "success" if task.startswith("mw-") else "return",
        }
    )


def read_by_seed(folder: Path) -> Found:
    """A folder with one folder per task, and in it one text file of pairs of numbers per seed."""
    parts, outside = [], []
    for home in sorted(path for path in folder.iterdir() if path.is_dir()):
        task = our_task(home.name)
        if task is None:
            outside.append(home.name)
            continue
        for path in sorted(home.glob("*.txt")):
            tidy.refuse_pointer(path)
            try:
                pairs = np.loadtxt(path, ndmin=2)
                seed = int(path.stem)
            except (OSError, ValueError) as error:
                raise AnalysisError(f"cannot read {path}: {_line(error)}") from None
            if pairs.shape[1] != 2:
                raise AnalysisError(f"{path} has lines that are not `step value`: {_VERSION}")
            parts.append(
                pd.DataFrame(
                    {
                        "task": task,
                        "seed": seed,
                        "env_step": pairs[:, 0].astype(np.int64),
                        "value": pairs[:, 1],
                        "metric": "return",
                    }
                )
            )
    return Found(_joined(parts, folder), outside, [])


def _csv(path: Path, wanted: set[str]) -> pd.DataFrame:
    tidy.refuse_pointer(path)
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise AnalysisError(f"cannot read {path}: {_line(error)}") from None
    missing = sorted(wanted - set(table.columns))
    if missing:
        raise AnalysisError(f"{path} has no column {', '.join(missing)}: {_VERSION}")
    return table


def _rows(table: pd.DataFrame, path: Path) -> Found:
    """The tidy columns, each run once.

    Some files hold a run several times, even under the label of another seed. Copies are left out;
    of two different values of one run at one step the first is kept, and reported.
    """
    rows = table[["task", "seed", "env_step", "value", "metric"]].dropna()
    try:
        rows = rows.astype({"seed": "int64", "env_step": "int64", "value": "float64"})
    except (ValueError, TypeError) as error:
        raise AnalysisError(f"{path}: {_line(error)}: {_VERSION}") from None
    key = ["task", "seed", "env_step"]
    copies = rows.groupby(key, sort=False).cumcount()
    if not copies.any():
        return Found(rows.reset_index(drop=True), [], [])
    seen: set[tuple[object, ...]] = set()
    kept = []
    for (task, _, _), run in rows.groupby(["task", "seed", copies], sort=False):
        curve = run.sort_values("env_step")
        mark = (task, tuple(curve["env_step"]), tuple(curve["value"]))
        if mark not in seen:
            seen.add(mark)
            kept.append(run)
    found = pd.concat(kept, ignore_index=True)
    twice = found.duplicated(key)
    notes = [f"{path}: {int(twice.sum())} evaluations appear twice with two values, the first kept"]
    return Found(found[~twice].reset_index(drop=True), [], notes if twice.any() else [])


def _joined(parts: Iterable[pd.DataFrame], where: Path) -> pd.DataFrame:
    found = list(parts)
    if not found:
        raise AnalysisError(f"{where} holds no task of the paper: {_VERSION}")
    return pd.concat(found, ignore_index=True)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
