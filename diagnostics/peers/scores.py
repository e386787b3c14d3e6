"""Published runs as numbers: both score rules, on each file's own grid or on a common one.

A maximum over many evaluations is higher than one over few, so *best before T* flatters those who
evaluate often. BRO was evaluated every 25k frames, SimBa every 50k, TD-MPC2, SimBaV2 and XQC every
100k. Scores of several methods are therefore taken on the coarsest of their grids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from diagnostics.metrics import student
from diagnostics.metrics.scores import Grid, best_score
from diagnostics.metrics.student import Interval
from diagnostics.peers.load import Peers

UNIT = 25_000
"""Grids are multiples of this many frames: the finest that the paper's baselines used."""

RUN = ["method", "task", "seed"]

Steps = NDArray[np.int64]
Values = NDArray[np.float64]


def _last(steps: Steps, values: Values, until: float) -> float:
    usable = (steps <= until) & ~np.isnan(values)
    return float(values[usable][np.argmax(steps[usable])]) if usable.any() else math.nan


RULES: dict[str, Callable[[Steps, Values, float], float]] = {
    "best before T": best_score,
    "best up to T": lambda steps, values, at: best_score(steps, values, np.nextafter(at, np.inf)),
    "last up to T": _last,
    "last before T": lambda steps, values, at: _last(steps, values, np.nextafter(at, 0)),
}
"""How a run may have become a number. The paper does not say which."""


def spacing(peers: Peers) -> pd.Series:
    """Frames between a file's evaluations, in multiples of `UNIT`, by method and task."""
    found: dict[tuple[str, str], int] = {}
    for run in peers.runs:
        at = np.unique(np.append(run.steps, 0))
        typical = float(np.median(np.diff(at))) if len(at) > 1 else UNIT
        apart = UNIT * max(1, math.ceil(typical / UNIT - 1e-9))
        key = (run.method, run.task)
        found[key] = max(found.get(key, 0), apart)
    index = pd.MultiIndex.from_tuples(found, names=["method", "task"])
    return pd.Series(list(found.values()), index=index, dtype="int64")


def common_grid(peers: Peers) -> Grid:
    """The coarsest grid of these methods and tasks."""
    found = spacing(peers)
    return Grid(int(found.max()) if len(found) else UNIT)


def scores(peers: Peers, grid: Grid | None = None) -> pd.DataFrame:
    """Both scores of every published run.

    Args:
        peers: whose.
        grid: the evaluations among which the best score chooses; None takes the coarsest grid of
            the methods, task by task.

    Returns:
        Columns `method`, `task`, `seed`, `best_score`, `final_score` (the last evaluation up to T),
        `own_score` (the best on the file's own grid) and `grid_steps`.
    """
    coarsest = spacing(peers).groupby("task").max()
    rows = []
    for run in peers.runs:
        apart = int(coarsest[run.task]) if grid is None else grid.steps
        rows.append(
            {
                "method": run.method,
                "task": run.task,
                "seed": run.seed,
                "best_score": best_score(run.steps, run.values, run.until, apart),
                "final_score": _last(run.steps, run.values, run.until),
                "own_score": best_score(run.steps, run.values, run.until),
                "grid_steps": math.nan if apart is None else apart,
            }
        )
    columns = [*RUN, "best_score", "final_score", "own_score", "grid_steps"]
    return pd.DataFrame(rows, columns=columns)


def by_rule(peers: Peers, rule: str) -> pd.DataFrame:
    """Each run's number under one of `RULES`: columns `method`, `task`, `seed`, `score`."""
    number = RULES[rule]
    rows = [
        (run.method, run.task, run.seed, number(run.steps, run.values, run.until))
        for run in peers.runs
    ]
    return pd.DataFrame(rows, columns=[*RUN, "score"])


def mean_over_tasks(samples: Mapping[str, tuple[float, float, int]]) -> Interval:
    """The mean over tasks of mean scores, with its 95 % Student interval over seeds.

    Tasks are chosen and seeds are chance, so only the latter make the interval; the degrees of
    freedom are Satterthwaite's. Sums and differences of independent means are of the same form.
    `samples` holds mean, sample variance over seeds and number of seeds, by task. The ends are NaN
    if a task has one seed, or if no task has any spread.
    """
    if not samples:
        return Interval(math.nan, math.nan, math.nan)
    means, variances, counts = (
        np.array(part, float) for part in zip(*samples.values(), strict=True)
    )
    estimate = float(means.mean())
    return student.interval(estimate, variances / counts / len(means) ** 2, counts - 1)
