"""Interference: whether learning from new data helps or harms what was learned from old data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diagnostics.probes.common import (
    at_least_one,
    noise,
    record,
    rows_of,
    sample_window,
    stored_windows,
)
from fog.events import Outline, Probe, ProbeCost, View

Array = NDArray[np.float64]
Gradients = Mapping[str, Tensor]
"""Gradients of several losses by parameter, one row each."""

_HELD_BYTES = 64_000_000
"""Gradients in memory on each side of the Gram matrix: those of a wide critic take 17 MB each."""


class Interference(Probe):
    """Inner products of gradients of the online critic's loss on data of different age.

    Two Gram matrices at the end of each window: of the mean gradients of the insertion windows, and
    of the gradients of single transitions spread evenly over age. Only the matrices are kept, and
    gradients are recomputed rather than held, so memory stays bounded however wide the critic.

    Args:
        batch: transitions of each insertion window that its mean gradient is taken over.
        windows: most insertion windows to compare; of more, as many spread evenly over age.
        samples: single transitions.
    """

    name = "interference"

    def __init__(self, batch: int = 512, windows: int = 20, samples: int = 128) -> None:
        self._batch = at_least_one(batch, "batch")
        self._windows = at_least_one(windows, "windows")
        self._samples = at_least_one(samples, "samples")

    def cost(self, run: Outline) -> ProbeCost:
        """Mean gradients of the stored windows, and products of single gradients."""
        stored = sum(
            min(self._windows, -(-run.stored(at) // run.window_steps)) for at in run.windows
        )
        rows, single = self._batch * stored, 140 * self._samples * len(run.windows)
        flops = rows * (run.loss_flops + 2.4 * run.value_flops) + single * run.value_flops
        kept = 8 * self._samples * (self._samples + 1) * len(run.windows)
        return ProbeCost(flops, 2 * len(run.windows), kept)

    def on_window(self, view: View) -> None:
        """Measure."""
        windows = stored_windows(view)
        if not len(windows):
            return
        if len(windows) > self._windows:
            kept = np.linspace(0, len(windows) - 1, self._windows).round().astype(np.int64)
            windows = windows[kept]
        ids = [sample_window(view, int(window), self._batch) for window in windows]
        products = _window_products(view, ids)
        cosines = cosine(products)
        ages = np.array([view.replay.added - 1 - each.mean() for each in ids])
        k = len(windows)
        record(
            view,
            "interference",
            {
                "window": np.repeat(windows, k),
                "other": np.tile(windows, k),
                "age": np.repeat(ages, k),
                "other_age": np.tile(ages, k),
                "dot": products.ravel(),
                "cosine": cosines.ravel(),
            },
        )
        chosen = _spread(view, self._samples)
        single = cosine(_single_products(view, chosen))
        record(
            view,
            "interference_rank",
            {
                "windows": [k],
                "window_rank": [effective_rank(cosines)],
                "samples": [len(chosen)],
                "sample_rank": [effective_rank(single)],
                "transitions": [chosen],
                "cosines": [single.ravel()],
            },
        )


def cosine(products: Array) -> Array:
    """Cosines from a Gram matrix; NaN where a vector is zero."""
    norms = np.sqrt(np.diagonal(products))
    norms = np.where(norms > 0, norms, np.nan)
    cosines: Array = products / np.outer(norms, norms)
    return cosines


def effective_rank(cosines: Array) -> float:
    """Exponential of the entropy of the eigenvalues, as shares of their sum (Roy & Vetterli).

    1 if all vectors point along one line, their number if they are orthogonal. Zero vectors do not
    count; NaN if anything else is not finite.
    """
    kept = ~np.isnan(np.diagonal(cosines))
    matrix = cosines[np.ix_(kept, kept)]
    if not matrix.size or not np.isfinite(matrix).all():
        return float("nan")
    values = np.maximum(np.linalg.eigvalsh(matrix), 0.0)
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def _spread(view: View, size: int) -> NDArray[np.int64]:
    """One random transition of each of `size` equal stretches of the buffer, oldest first."""
    stored = view.replay.size
    edges = np.linspace(0, stored, min(size, stored) + 1).astype(np.int64)
    inside = view.rng.random(len(edges) - 1) * np.diff(edges)
    return view.replay.added - stored + edges[:-1] + inside.astype(np.int64)


def _window_products(view: View, ids: list[NDArray[np.int64]]) -> Array:
    """Gram matrix of the mean gradients of several sets of transitions."""
    agent = view.agent
    critic = agent.critics[0]
    everything = view.replay.take(np.concatenate(ids))
    drawn = noise(view, len(everything.reward))
    ends = np.cumsum([len(each) for each in ids])
    sets = [slice(end - len(each), end) for end, each in zip(ends, ids, strict=True)]

    def gradients(start: int, stop: int) -> Gradients:
        each = [
            agent.gradients(critic, rows_of(everything, rows), drawn[rows])
            for rows in sets[start:stop]
        ]
        return {name: torch.stack([grads[name] for grads in each]) for name in each[0]}

    return _gram(len(sets), gradients, _held(agent.parameters(critic)))


def _single_products(view: View, ids: NDArray[np.int64]) -> Array:
    """Gram matrix of the gradients of single transitions."""
    agent = view.agent
    critic, batch = agent.critics[0], view.replay.take(ids)
    target = agent.losses(batch, noise(view, len(ids)))[critic].target
    params = {name: tensor.detach() for name, tensor in agent.parameters(critic).items()}

    def loss(params: Mapping[str, Tensor], obs: Tensor, action: Tensor, y: Tensor) -> Tensor:
        values = agent.evaluate(critic, params, obs[None], action[None])
        return agent.critic_loss(critic, values, y[None])[0]

    each: Callable[..., Gradients] = torch.func.vmap(torch.func.grad(loss), (None, 0, 0, 0))

    def gradients(start: int, stop: int) -> Gradients:
        rows = slice(start, stop)
        return each(params, batch.obs[rows], batch.action[rows], target[rows])

    return _gram(len(ids), gradients, _held(params))


def _held(params: Mapping[str, Tensor]) -> int:
    size = sum(tensor.numel() * tensor.element_size() for tensor in params.values())
    return max(1, _HELD_BYTES // size)


def _gram(count: int, gradients: Callable[[int, int], Gradients], held: int) -> Array:
    """Inner products of `count` gradients, holding at most two times `held` of them at a time."""
    products = np.empty((count, count))
    for start in range(0, count, held):
        rows = slice(start, min(start + held, count))
        left = gradients(rows.start, rows.stop)
        for other in range(start, count, held):
            columns = slice(other, min(other + held, count))
            right = left if other == start else gradients(columns.start, columns.stop)
            block = sum(_product(left[name], right[name]) for name in left)
            products[rows, columns] = block
            products[columns, rows] = np.transpose(block)
    return products


def _product(left: Tensor, right: Tensor) -> Any:
    return (left.flatten(1) @ right.flatten(1).T).double().cpu().numpy()
