"""A primacy-bias index: one number per heatmap column, so that variants can be ranked.

A column of the critic-loss heatmap holds the loss L_j of each insertion window j at one moment. Of
the K complete windows stored then, the index compares the newest with the oldest half:

    index = ln( L_{K-1} / mean of L_0 .. L_{h-1} ),    h = max(1, floor(K / 2)),

the mean weighted by the number of transitions. It is 0 if the newest experience is fitted as well
as the oldest, positive if it is fitted worse (what the paper calls primacy bias), negative if old
experience has been forgotten. A factor common to all windows cancels. Take for L the column
`scaled` of the table, the loss divided by the variance of the window's own targets: the raw loss of
windows with larger returns is larger at equal accuracy.

What it cannot tell:

- Why the newest window is fitted worse. It has been drawn least often, under uniform replay by
  far; its states may be harder; only a comparison of variants on the same task says more.
- Whether anything is fitted: an agent that learns nothing has an index near 0. Read it beside the
  loss itself and the return.
- Anything about generalisation: both losses are on stored, trained-on transitions.
- The moment after a reset: every window is then equally unknown and the index near 0, whatever the
  agent was like before. Our windows are measured before a reset or an expansion
  on their step.
- With fewer than two complete windows there is no index (NaN).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diagnostics.metrics import student
from diagnostics.metrics.student import Interval

FloatArray = NDArray[np.float64]


def column_index(loss: ArrayLike, count: ArrayLike, complete: ArrayLike | None = None) -> float:
    """The index of one heatmap column.

    Args:
        loss: mean loss of each stored window, oldest first.
        count: stored transitions of each window.
        complete: which windows are complete; None means all. A window that is still filling, or
            already being evicted, holds too few transitions to represent its time.

    Returns:
        The index; NaN with fewer than two complete windows, or if a loss is not positive.
    """
    losses, counts = np.asarray(loss, np.float64), np.asarray(count, np.float64)
    if losses.shape != counts.shape or losses.ndim != 1:
        raise ValueError(f"loss {losses.shape} and count {counts.shape} must be equal vectors")
    if complete is not None:
        kept = np.asarray(complete, bool)
        losses, counts = losses[kept], counts[kept]
    if len(losses) < 2:
        return float("nan")
    half = max(1, len(losses) // 2)
    oldest = float(np.average(losses[:half], weights=counts[:half]))
    newest = float(losses[-1])
    if not (oldest > 0 and newest > 0):
        return float("nan")
    return float(np.log(newest / oldest))


def column_indices(
    env_step: ArrayLike, window: ArrayLike, loss: ArrayLike, count: ArrayLike, window_steps: int
) -> tuple[NDArray[np.int64], FloatArray]:
    """The index of every column of a run, from columns of the `critic_loss` table of one critic.

    Args:
        env_step: when each row was measured.
        window: insertion window of the row.
        loss: `scaled` or `mean` of the row.
        count: transitions of the row.
        window_steps: transitions of a complete window.

    Returns:
        The measurement steps in ascending order, and the index at each.
    """
    steps, windows = np.asarray(env_step, np.int64), np.asarray(window, np.int64)
    losses, counts = np.asarray(loss, np.float64), np.asarray(count, np.float64)
    moments = np.unique(steps)
    indices = np.empty(len(moments))
    for k, moment in enumerate(moments):
        rows = np.flatnonzero(steps == moment)
        rows = rows[np.argsort(windows[rows], kind="stable")]
        if len(np.unique(windows[rows])) != len(rows):
            raise ValueError(f"several rows for one window at step {moment}: choose one critic")
        indices[k] = column_index(losses[rows], counts[rows], counts[rows] == window_steps)
    return moments, indices


@dataclass(frozen=True)
class Ranked:
    """A variant's place: its index averaged over columns, and how far the next one is behind."""

    variant: str
    index: Interval
    seeds: int
    behind: Interval
    """The next one's index minus this one's, with Welch's interval; NaN for the last."""


def rank(variants: Mapping[str, Sequence[ArrayLike]]) -> list[Ranked]:
    """Variants from the least to the most primacy bias.

    Args:
        variants: for each variant one vector of column indices per seed. A seed's number is its
            mean over columns; columns that are NaN (the first) are left out.
    """
    means = {name: _seed_means(seeds) for name, seeds in variants.items()}
    order = sorted(means, key=lambda name: means[name].mean())
    nothing = Interval(float("nan"), float("nan"), float("nan"))
    behind = [student.difference(means[b], means[a]) for a, b in pairwise(order)]
    return [
        Ranked(name, student.mean(means[name]), len(means[name]), gap)
        for name, gap in zip(order, [*behind, nothing], strict=True)
    ]


def _seed_means(seeds: Sequence[ArrayLike]) -> FloatArray:
    rows = [np.asarray(row, np.float64) for row in seeds]
    means = np.array([row[np.isfinite(row)].mean() for row in rows if np.isfinite(row).any()])
    if means.size == 0:
        raise ValueError("a variant without a single finite column index cannot be ranked")
    return means
