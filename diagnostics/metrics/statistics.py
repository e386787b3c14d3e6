"""Aggregates over runs and tasks.

Pure functions on arrays. Scores are an array of shape (runs, tasks): row i holds the i-th seed of
every task. NaN marks a missing run, so tasks may have different numbers of seeds. The aggregates
are those of Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
(NeurIPS 2021), and agree with their library rliable. Intervals: `diagnostics.metrics.student`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


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


def _scores(scores: ArrayLike) -> Floats:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim < 2:
        raise ValueError(f"scores must have shape (runs, tasks), got {array.shape}")
    return array


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
