"""How a run becomes a number: the scoring rules and normalisations of the paper and of the field.

Two rules. *Final* is the mean score of the last evaluation. *Best* is the paper's: the largest
mean score of an evaluation strictly before T environment steps, per seed. The paper does not say
so, but it reproduces its baselines' cells from their public logs, and no other rule does. It
flatters noisy runs and those evaluated often, so tables here show both.

Two normalisations. The paper divides by the best single run of the task over all methods and
seeds, so that one better run lowers everybody else. The fixed one divides by a constant of the
suite (`Runs.runs["normaliser"]`): 1000 on DMC, 1 on Meta-World, the success bar on HumanoidBench,
the best printed mean on MuJoCo.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MEASURES = ("return", "success_once", "success_end")


def curve(evals: pd.DataFrame) -> pd.DataFrame:
    """Evaluation means: one row per run and evaluation, from one row per episode.

    Args:
        evals: `Runs.evals`, or one run's `evals.csv`.

    Returns:
        The columns that name a run, `env_step`, the means of return and successes, and the number
        of `episodes` behind them.
    """
    names = [
        name
        for name in ("task", "variant", "seed", "scale", "label", "run", "env_step")
        if name in evals
    ]
    measures = [name for name in MEASURES if name in evals]
    if evals.empty:
        return pd.DataFrame(columns=[*names, *measures, "episodes"])
    groups = evals.groupby(names, sort=False, dropna=False)
    means = groups[measures].mean()
    means["episodes"] = groups.size()
    return means.reset_index()


def final_score(env_steps: NDArray[Any], scores: NDArray[Any]) -> float:
    """The score of the last evaluation; NaN if there was none.

    Args:
        env_steps: when a run was evaluated.
        scores: mean score of each evaluation.
    """
    return float(scores[np.argmax(env_steps)]) if len(scores) else np.nan


def best_score(env_steps: NDArray[Any], scores: NDArray[Any], before: float) -> float:
    """The paper's rule: the largest score evaluated strictly before step `before`; NaN if none."""
    usable = np.asarray(scores, dtype=float)[np.asarray(env_steps) < before]
    usable = usable[~np.isnan(usable)]
    return float(usable.max()) if len(usable) else np.nan


def by_best_run(scores: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The paper's normalisation of one task: divide by the best single run of any method.

    Args:
        scores: the seeds' scores of each method on one task.

    Returns:
        The same, with the best run at 1. All NaN if no run scored above 0: a share of a best
        score has no meaning then (returns that are costs, such as Pendulum's).
    """
    pooled = np.concatenate([np.empty(0), *(np.asarray(at, float) for at in scores.values())])
    best = np.max(pooled, initial=0.0, where=~np.isnan(pooled))
    best = best if best > 0 else np.nan
    return {name: np.asarray(values, float) / best for name, values in scores.items()}


def by_constant(scores: NDArray[Any], normaliser: float | None) -> NDArray[Any]:
    """Scores over a constant of the suite; NaN for tasks that have none."""
    constant = np.nan if normaliser is None else float(normaliser)
    return np.asarray(scores, float) / constant


def normalise(runs: pd.DataFrame, score: str = "best_score") -> pd.DataFrame:
    """Both normalisations of every run.

    Args:
        runs: `Runs.runs`.
        score: the column to normalise: `best_score` (as in the paper) or `final_score`.

    Returns:
        A copy with columns `by_best_run` and `by_constant`. The best run is looked for among runs
        of the same task, scale and length only.
    """
    table = runs.copy()
    best = table.groupby(["task", "scale", "steps"], dropna=False)[score].transform("max")
    table["by_best_run"] = table[score] / best.where(best > 0)
    table["by_constant"] = table[score] / table["normaliser"]
    return table
