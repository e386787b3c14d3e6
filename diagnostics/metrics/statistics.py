"""Aggregates over runs and tasks, with intervals: few seeds deserve honest error bars.

Pure functions on arrays. Scores are an array of shape (runs, tasks): row i holds the i-th seed of
every task. NaN marks a missing run, so tasks may have different numbers of seeds. The aggregates
are those of Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
(NeurIPS 2021), and agree with their library rliable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Aggregate = Callable[..., Any]
"""From one or more arrays of shape (..., runs, tasks) to numbers for each leading index."""

RESAMPLES = 2000
CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A point estimate and its confidence interval; NaN where there is nothing to estimate."""

    estimate: float
    low: float
    high: float


def mean(scores: ArrayLike) -> Floats:
    """Mean over tasks of the mean over runs."""
    return _nan_mean(_nan_mean(_scores(scores), -2), -1)


def median(scores: ArrayLike) -> Floats:
    """Median over tasks of the mean over runs."""
    means = _nan_mean(_scores(scores), -2)
    return _quantile(means, (0.5,))[..., 0]


def iqm(scores: ArrayLike) -> Floats:
    """Interquartile mean: the mean of the middle half of all runs of all tasks, pooled.

    Like a median it ignores outliers, and it needs fewer runs to be as certain. A quarter of the
    runs, rounded down, is cut off at either end.
    """
    pooled = _scores(scores)
    pooled = np.sort(pooled.reshape(*pooled.shape[:-2], -1), axis=-1)
    count = np.sum(~np.isnan(pooled), axis=-1, keepdims=True)
    # NaN sorts to the end, so the first `count` entries are the scores.
    rank = np.arange(pooled.shape[-1])
    cut = count // 4
    return _nan_mean(np.where((rank >= cut) & (rank < count - cut), pooled, np.nan), -1)


def optimality_gap(scores: ArrayLike, gamma: float = 1.0) -> Floats:
    """How far scores fall short of `gamma`, which counts as solved; more than that earns nothing.

    Smaller is better.
    """
    return gamma - mean(np.minimum(_scores(scores), gamma))


def probability_of_improvement(scores: ArrayLike, others: ArrayLike) -> Floats:
    """P(a run of the first beats a run of the second), averaged over tasks; ties count half.

    Args:
        scores: shape (..., runs, tasks).
        others: shape (..., other runs, tasks): the same tasks in the same order.
    """
    one, other = _scores(scores)[..., :, None, :], _scores(others)[..., None, :, :]
    known = ~(np.isnan(one) | np.isnan(other))
    wins = np.where(known, (one > other) + 0.5 * (one == other), np.nan)
    return _nan_mean(_nan_mean(wins.reshape(*wins.shape[:-3], -1, wins.shape[-1]), -2), -1)


def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Share of runs above each threshold, averaged over tasks.

    Args:
        scores: shape (..., runs, tasks).
        thresholds: scores tau at which P(score > tau) is wanted.

    Returns:
        Shape (..., thresholds).
    """
    values = _scores(scores)[..., None, :, :]
    above = values > np.asarray(thresholds, float)[:, None, None]
    return mean(np.where(np.isnan(values), np.nan, above))


def bootstrap(
    aggregate: Aggregate,
    scores: ArrayLike | tuple[ArrayLike, ...],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> tuple[Floats, Floats, Floats]:
    """A statistic and its stratified-bootstrap percentile interval.

    Runs are drawn with replacement within each task, never across tasks, because tasks are fixed
    and seeds are random.

    Args:
        aggregate: a function of this module, or any that reduces the last two axes.
        scores: shape (runs, tasks); or a tuple of such arrays, each resampled separately and passed
            to `aggregate` as a further argument (`probability_of_improvement`).
        rng: makes the interval reproducible.
        resamples: bootstrap samples.
        confidence: coverage of the interval.

    Returns:
        The statistic and the two ends of the interval, each of the shape that `aggregate` returns.
        With one run per task there is nothing to resample: the ends are NaN.
    """
    groups = [_scores(group) for group in (scores if isinstance(scores, tuple) else (scores,))]
    point = np.asarray(aggregate(*groups), float)
    if max(_most_runs(group) for group in groups) < 2:
        return point, np.full_like(point, np.nan), np.full_like(point, np.nan)
    drawn = []
    # Bounded memory: a hundred tasks with ten seeds at 2,000 resamples would be 16 MB per array.
    cells = sum(group.size for group in groups)
    size = max(1, min(resamples, 4_000_000 // max(1, cells)))
    for start in range(0, resamples, size):
        count = min(size, resamples - start)
        drawn.append(aggregate(*(_resampled(group, count, rng) for group in groups)))
    tail = (1 - confidence) / 2
    ends = _quantile(np.moveaxis(np.concatenate(drawn), 0, -1), (tail, 1 - tail))
    return point, ends[..., 0], ends[..., 1]


def interval(
    aggregate: Aggregate,
    scores: ArrayLike | tuple[ArrayLike, ...],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """`bootstrap` of a statistic that is one number."""
    parts = bootstrap(aggregate, scores, rng, resamples=resamples, confidence=confidence)
    return Interval(*(float(part) for part in parts))


def matrix(groups: Sequence[ArrayLike]) -> Floats:
    """Scores as (runs, tasks) from one list of seeds per task, padded with NaN."""
    columns = [np.asarray(group, float).ravel() for group in groups]
    table = np.full((max((len(column) for column in columns), default=0), len(columns)), np.nan)
    for task, column in enumerate(columns):
        table[: len(column), task] = column
    return table


def _scores(scores: ArrayLike) -> Floats:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim < 2:
        raise ValueError(f"scores must have shape (runs, tasks), got {array.shape}")
    return array


def _most_runs(scores: Floats) -> int:
    return int(np.max(np.sum(~np.isnan(scores), axis=-2), initial=0))


def _resampled(scores: Floats, count: int, rng: np.random.Generator) -> Floats:
    """`count` copies, each with every task's runs resampled from that task's runs."""
    # Stable, so that complete tasks keep their order and NaN moves behind the runs.
    order = np.argsort(np.isnan(scores), axis=0, kind="stable")
    packed = np.take_along_axis(scores, order, axis=0)
    runs = np.sum(~np.isnan(scores), axis=0)
    index = rng.integers(0, np.maximum(runs, 1), size=(count, *scores.shape))
    sample = packed[index, np.arange(scores.shape[1])]
    missing = np.arange(scores.shape[0])[:, None] >= runs
    return np.where(missing, np.nan, sample)


def _nan_mean(values: Floats, axis: int) -> Floats:
    """Mean without NaN; NaN, and no warning, where nothing is left."""
    known = ~np.isnan(values)
    count = np.sum(known, axis=axis)
    total = np.sum(np.where(known, values, 0.0), axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _quantile(values: Floats, at: tuple[float, ...]) -> Floats:
    """Quantiles along the last axis without NaN, on a new last axis; NaN where nothing is left."""
    known = np.asarray(~np.isnan(values)).any(axis=-1, keepdims=True)
    # Zeros keep numpy quiet about rows without a value, which are masked afterwards.
    safe = np.where(known, values, 0.0)
    return np.where(known, np.moveaxis(np.nanquantile(safe, at, axis=-1), 0, -1), np.nan)
