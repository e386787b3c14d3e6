"""How a run becomes a number: the scoring rules and normalisations of the paper and of the field.

Two rules. *Final* is the mean score of the last evaluation. *Best* is the paper's: the largest
mean score of an evaluation strictly before T environment steps, per seed. The paper does not state
it, but this rule reproduces its baselines' cells from their public logs, and no other rule does. It
flatters noisy runs and those evaluated often: a maximum over five times as many evaluations is
higher by 0.6 to 0.7 standard deviations of the evaluation noise. So tables here show both rules,
and *best* chooses among the evaluations on a grid of 25k steps (times the run's scale), the
interval of the paper's authors, however often a run was evaluated. Every table names its grid.

Two normalisations. The paper divides by the best single run of the task over all methods and
seeds, so that one better run lowers all others. The fixed one divides by a constant of the
suite (`Runs.runs["normaliser"]`): 1000 on DMC, 1 on Meta-World, the success bar on HumanoidBench,
the best printed mean on MuJoCo.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from diagnostics.errors import AnalysisError

MEASURES = ("return", "success_once", "success_end")


@dataclass(frozen=True)
class Grid:
    """The evaluations among which `best_score` chooses.

    Attributes:
        steps: environment steps between the points at scale 1; None chooses among all evaluations.
    """

    steps: int | None = 25_000

    @classmethod
    def named(cls, name: str) -> Grid:
        """The grid of a name such as `25k`, `5000` or `all`.

        Raises:
            AnalysisError: the name is unknown.
        """
        if name == "all":
            return cls(None)
        number = re.fullmatch(r"([1-9]\d*)(k?)", name)
        if number is None:
            raise AnalysisError(f"unknown grid {name!r}: give steps such as 25k or 5000, or all")
        return cls(int(number[1]) * (1000 if number[2] else 1))

    @property
    def name(self) -> str:
        """As in `named`."""
        if self.steps is None:
            return "all"
        return f"{self.steps // 1000}k" if self.steps % 1000 == 0 else str(self.steps)

    def spacing(self, scale: float) -> int | None:
        """Environment steps between the points in a run of that scale."""
        return None if self.steps is None else max(1, round(self.steps * scale))

    def rule(self, score: str) -> str:
        """In words, the rule behind a column `best_score` or `final_score`."""
        if score.startswith("final"):
            return "final"
        among = "all evaluations" if self.steps is None else f"{self.name} grid"
        return f"best before T, {among}"


PAPER_GRID = Grid()


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


def best_score(
    env_steps: NDArray[Any], scores: NDArray[Any], before: float, spacing: int | None = None
) -> float:
    """The paper's rule: the largest score evaluated strictly before step `before`; NaN if none.

    Args:
        env_steps: when a run was evaluated.
        scores: mean score of each evaluation.
        before: T.
        spacing: environment steps between the points of the grid; None takes every evaluation.
    """
    env_steps, scores = np.asarray(env_steps), np.asarray(scores, dtype=float)
    usable = env_steps < before
    if spacing is not None:
        usable &= on_grid(env_steps, spacing, before)
    usable &= ~np.isnan(scores)
    return float(scores[usable].max()) if usable.any() else np.nan


def on_grid(env_steps: NDArray[Any], spacing: int, before: float = np.inf) -> NDArray[np.bool_]:
    """Which evaluations stand for the points of a grid strictly before step `before`.

    They are those at the points themselves if the interval of evaluations divides the spacing.
    Otherwise the last evaluation before a point stands for it. Points after the last evaluation
    are not reached yet; a run of no more than `spacing` steps has no point at all.

    Args:
        env_steps: when a run was evaluated.
        spacing: environment steps between the points, the first of which is `spacing`.
        before: T.
    """
    kept = np.zeros(len(env_steps), bool)
    order = np.argsort(env_steps, kind="stable")
    times = np.asarray(env_steps)[order]
    reached = int(times[-1] // spacing) if len(times) else 0
    points = spacing * np.arange(1, reached + 1)
    places = np.searchsorted(times, points[points < before], side="right") - 1
    kept[order[places[places >= 0]]] = True
    return kept


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
