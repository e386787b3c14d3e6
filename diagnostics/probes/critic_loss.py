"""Critic loss over the whole buffer: one column of the paper's heatmap at each window's end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diagnostics.probes.common import noise, record
from fog.events import Loss, Outline, Probe, ProbeCost, View

Moments = NDArray[np.float64]


class CriticLoss(Probe):
    """The training loss of every stored transition, averaged per insertion window.

    "Every 100k steps, we measure critic loss over the entire buffer and average the loss every
    100k steps" (caption of the motivating example). Exact, not sampled; the next actions of the
    targets come from the probe's own stream; unweighted even for prioritised replay.

    Args:
        raw: also store the loss of every single transition, 4 bytes per transition and critic.
    """

    name = "critic_loss"

    def __init__(self, raw: bool = False) -> None:
        self._raw = raw

    def cost(self, run: Outline) -> ProbeCost:
        """One pass over the buffer for each window, a file for each network."""
        rows = sum(run.stored(step) for step in run.windows)
        files = run.fitted * len(run.windows)
        raw = 4 * run.fitted * rows if self._raw else 0
        return ProbeCost(rows * run.loss_flops, (1 + self._raw) * files, raw)

    def on_window(self, view: View) -> None:
        """Measure; a reset or an expansion after the last update of this step comes afterwards."""
        replay, width = view.replay, view.facts.window_steps
        first_id, added = replay.added - replay.size, replay.added
        first, last = first_id // width, (added - 1) // width
        sums: dict[str, Moments] = {}
        raw: dict[str, NDArray[np.float32]] = {}
        rows, losses = view.agent.bulk_losses(replay.size)
        for ids, batch in replay.chunks(rows):
            found = losses(batch, noise(view, len(ids)))
            windows = ids // width - first
            for critic, loss in found.items():
                if critic not in sums:
                    sums[critic] = np.zeros((6, last - first + 1))
                    if self._raw:
                        raw[critic] = np.empty(replay.size, np.float32)
                values = _add(sums[critic], windows, loss)
                if self._raw:
                    raw[critic][ids - first_id] = values
        for critic, moments in sums.items():
            record(view, "critic_loss", _summary(critic, moments, first_id, added, width))
            if self._raw:
                columns = {"critic": [critic], "first": [first_id], "loss": [raw[critic]]}
                record(view, "critic_loss_raw", columns)


def _add(sums: Moments, windows: NDArray[np.int64], loss: Loss) -> NDArray[np.float64]:
    """Add count, loss, its square, target, its square and the squared error, by window.

    In double precision. The squared error is the loss itself but of critics of a distribution.

    Consecutive ids make consecutive windows, so a chunk is a few runs of equal windows.
    """
    values = loss.loss.detach().cpu().numpy().astype(np.float64)
    target = loss.target.detach().cpu().numpy().astype(np.float64)
    squared = loss.loss if loss.squared_error is None else loss.squared_error
    error = squared.detach().cpu().numpy().astype(np.float64)
    starts = np.flatnonzero(np.diff(windows, prepend=-1))
    table = np.stack([np.ones_like(values), values, values**2, target, target**2, error])
    sums[:, windows[starts]] += np.add.reduceat(table, starts, axis=1)
    return values


def _summary(critic: str, moments: Moments, oldest: int, added: int, width: int) -> dict[str, Any]:
    windows = np.arange(oldest // width, oldest // width + moments.shape[1])
    start, end = windows * width, (windows + 1) * width
    count, (loss, loss2, target, target2, squared) = moments[0], moments[1:] / moments[0]
    variance = np.maximum(target2 - target**2, 0.0)
    scaled = np.divide(loss, variance, out=np.full_like(loss, np.nan), where=variance > 0)
    middle = (np.maximum(start, oldest) + np.minimum(end, added) - 1) / 2
    return {
        "critic": [critic] * len(windows),
        "window": windows,
        "window_start": start,
        "window_end": end,
        "count": count,
        "age": added - 1 - middle,
        "mean": loss,
        "std": np.sqrt(np.maximum(loss2 - loss**2, 0.0)),
        "target_mean": target,
        "target_variance": variance,
        "scaled": scaled,
        "squared_error": squared,
    }
