"""One row of facts per run: how far it came, how well it did, how fast it was."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from diagnostics.metrics.scores import Grid, best_score, curve, final_score
from diagnostics.runs.directories import MOST

Entry = tuple[Path, Mapping[str, Any], Mapping[str, Any]]
"""A run's directory, config and manifest."""

_WRITTEN = ("evals.csv", "train.csv", "events.csv", "manifest.json")


def summarise(
    identity: pd.DataFrame,
    entries: Sequence[Entry],
    evals: pd.DataFrame,
    train: pd.DataFrame,
    grid: Grid,
) -> pd.DataFrame:
    """The table `Runs.runs` without its column `problems`, of the same runs throughout."""
    curves = dict(list(curve(evals).groupby("run", sort=False)))
    logs = dict(list(train.groupby("run", sort=False)))
    last_episode = evals.groupby("run")["env_step"].max()
    rows = []
    own = {*identity.columns, "steps"}
    named = zip(identity["run"], identity["scale"].fillna(1.0), entries, strict=True)
    for name, scale, entry in named:
        scores = _scores(curves.get(name), entry[1], entry[2], grid, scale)
        row = _row(entry, scores, logs.get(name), last_episode.get(name, 0))
        rows.append(row | {k: v for k, v in entry[1].items() if k not in own})
    nobody: Entry = (Path(), {}, {})
    columns = [*_row(nobody, _scores(None, {}, {}, grid, 1.0), None, 0), "width", "replay_ratio"]
    facts = pd.DataFrame(rows, index=identity.index, columns=None if rows else columns)
    # Where no config can be read there is no such column.
    for column in {*columns} - {*facts}:
        facts[column] = np.nan
    for column in _NUMBERS:
        facts[column] = pd.to_numeric(facts[column]).astype("float64")
    return pd.concat([identity, facts], axis=1)


_NUMBERS = (
    *("steps", "normaliser", "final_score", "best_score"),
    *("final_return", "best_return", "grid_steps"),
)


def _row(
    entry: Entry, scores: Mapping[str, Any], log: pd.DataFrame | None, last_episode: int
) -> dict[str, Any]:
    path, config, manifest = entry
    reached = [0, manifest.get("env_step", 0), last_episode]
    if log is not None:
        reached.append(log["env_step"].max())
    return {
        "status": manifest.get("status", "unknown"),
        "reason": manifest.get("reason"),
        "steps": config.get("steps", np.nan),
        "env_step": int(max(at for at in reached if 0 <= at <= MOST)),
        **scores,
        "updates": np.nan if log is None else log["updates"].max(),
        "updates_per_second": np.nan if log is None else _rate(log),
        "idle_hours": _idle_hours(path),
        "group": manifest.get("group"),
        "metric": manifest.get("metric", "return"),
        **{name: manifest.get(name) for name in _TOLD},
    }


_TOLD = ("normaliser", "paper_row", "started", "ended", "git_commit")


def _scores(
    means: pd.DataFrame | None,
    config: Mapping[str, Any],
    manifest: Mapping[str, Any],
    grid: Grid,
    scale: float,
) -> dict[str, Any]:
    measure = "success_once" if manifest.get("metric") == "success" else "return"
    scores: dict[str, Any] = {}
    steps = config.get("steps") or np.inf
    spacing = grid.spacing(scale)
    for name, column in (("return", "return"), ("score", measure)):
        at, values = np.empty(0), np.empty(0)
        if means is not None and column in means:
            at, values = means["env_step"].to_numpy(), means[column].to_numpy(float)
        scores[f"final_{name}"] = final_score(at, values)
        scores[f"best_{name}"] = best_score(at, values, steps, spacing)
    scores |= {"grid": grid.name, "grid_steps": spacing}
    return {**scores, "evaluations": 0 if means is None else len(means)}


def _rate(log: pd.DataFrame) -> float:
    """Updates over seconds of the whole run, probes and evaluations included.

    A row holds the rate since the row before, so the seconds are its updates over its rate.
    """
    updates = np.diff(log["updates"].to_numpy(float), prepend=0.0)
    rates = log["updates_per_second"].to_numpy(float)
    usable = (rates > 0) & (updates > 0)
    seconds = (updates[usable] / rates[usable]).sum()
    return float(updates[usable].sum() / seconds) if seconds > 0 else np.nan


def _idle_hours(path: Path) -> float:
    times = [(path / name).stat().st_mtime for name in _WRITTEN if (path / name).exists()]
    return max(0.0, time.time() - max(times)) / 3600 if times else np.nan
