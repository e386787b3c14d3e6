"""Warm start: whether today's critic still learns new data as well as a fresh one would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diagnostics.probes.common import at_least_one, noise, record, sample_window
from fog.events import Outline, Probe, ProbeCost, View

Params = Mapping[str, Tensor]
Rows = slice | Tensor

_HELD_OUT = 5
"""One row in so many is held out."""
_POINTS = 8
"""Points of a loss curve after the start."""
_LEAST_UNIT = 1e-3
"""Of the current output, as a share of a fresh one's: a constant output has no unit."""


class WarmStart(Probe):
    """Fits a copy of the online critic and a fresh one to the same targets on the newest window.

    Both have the current shape and depth, a new Adam at the run's critic learning rate, and the
    same minibatches of the same transitions. The targets y are computed once from the current
    networks and standardised to z = (y - m) / s. Two fits:

    - `targets`: the current critic continues from where it is, loss = mean ((Q - y) / s)^2. The
      fresh one gets the size of Q for free, loss = mean (Q - z)^2: otherwise it would spend its
      steps on that. The current critic has a head start, since y comes from a lagged copy of it.
    - `change`: fits the change of the output, in units of its own spread u before the first step,
      loss = mean ((Q - Q_0) / u - z)^2. Both start from the same loss, so no head start hides a
      critic that can no longer move.

    Args:
        rows: transitions of the newest window; a fifth of them is held out.
        steps: optimiser steps.
        batch: transitions per step.
    """

    name = "warmstart"

    def __init__(self, rows: int = 1280, steps: int = 150, batch: int = 128) -> None:
        if rows < 2 * _HELD_OUT:
            raise ValueError(f"rows must be at least {2 * _HELD_OUT}")
        self._rows = rows
        self._batch = at_least_one(batch, "batch")
        self._steps = at_least_one(steps, "steps")
        points = np.geomspace(1, steps, _POINTS).round().astype(np.int64)
        self._points = np.unique(np.append(0, points))

    def cost(self, run: Outline) -> ProbeCost:
        """Four fits, forward and backward through the online critics in every step."""
        rows = len(run.windows) * 4 * self._steps * self._batch
        return ProbeCost(2.9 * rows * run.value_flops, len(run.windows))

    def on_start(self, view: View) -> None:
        """Refuse a critic that cannot be re-initialised, before anything is trained."""
        view.agent.fresh(view.agent.critics[0], np.random.default_rng(0))

    def on_window(self, view: View) -> None:
        """Measure."""
        if not view.replay.size:
            return
        agent = view.agent
        critic = agent.critics[0]
        newest = (view.replay.added - 1) // view.facts.window_steps
        ids = view.rng.permutation(sample_window(view, newest, self._rows))
        batch, drawn = view.replay.take(ids), noise(view, len(ids))
        held = len(ids) // _HELD_OUT
        fitted = len(ids) - held
        target = agent.losses(batch, drawn)[critic].target
        spread = target[:fitted].std(correction=0)
        task = _Task(
            lambda params, rows: agent.evaluate(
                critic, params, batch.obs[rows], batch.action[rows]
            ),
            (target - target[:fitted].mean()) / spread,
            fitted,
            view.rng.integers(0, fitted, (self._steps, self._batch)),
            self._points,
            agent.critic_lr(),
        )
        today, fresh = agent.parameters(critic), agent.fresh(critic, view.rng)
        starts = task.now(today), task.now(fresh)
        least = _LEAST_UNIT * task.spread(starts[1])
        members = len(least)
        mean, one = target[:fitted].mean(), torch.ones_like(least)
        outsets = {
            "targets": ((mean, spread * one), (torch.zeros_like(mean), one)),
            "change": tuple((q, torch.maximum(task.spread(q), least)) for q in starts),
        }
        # Two rows have a variance, and a constant target has nothing to be learned.
        measurable = held >= 2 and 0 < spread < torch.inf
        curves = np.full((len(outsets), 2, 2, members, len(self._points)), np.nan)
        if measurable:
            curves[:] = [
                [
                    task.fit(params, *origin)
                    for params, origin in zip((today, fresh), outset, strict=True)
                ]
                for outset in outsets.values()
            ]
        # Each is (fits, members) from here on.
        ends = np.log(np.maximum(curves[..., -1], np.finfo(np.float64).tiny))
        rows = len(outsets) * members
        columns = {
            "fit": np.repeat(list(outsets), members),
            "member": np.tile(np.arange(members), len(outsets)),
            "rows": [fitted] * rows,
            "held_out": [held] * rows,
            "gap": (ends[:, 0, 1] - ends[:, 1, 1]).ravel(),
            "gap_fitted": (ends[:, 0, 0] - ends[:, 1, 0]).ravel(),
            "steps": [self._points] * rows,
            "today": np.concatenate(curves[:, 0, 1]),
            "fresh": np.concatenate(curves[:, 1, 1]),
            "today_fitted": np.concatenate(curves[:, 0, 0]),
            "fresh_fitted": np.concatenate(curves[:, 1, 0]),
        }
        record(view, "warmstart", columns)


@dataclass(frozen=True)
class _Task:
    """What both critics must learn; rows from `fitted` on are held out.

    Attributes:
        outputs: Q (members, rows) of chosen rows, from parameters.
        target: standardised targets of all rows.
        fitted: number of rows to fit.
        order: rows of the minibatches, (steps, batch).
        points: steps after which losses are taken.
        lr: learning rate.
    """

    outputs: Callable[[Params, Rows], Tensor]
    target: Tensor
    fitted: int
    order: NDArray[np.int64]
    points: NDArray[np.int64]
    lr: float

    @torch.no_grad()
    def now(self, params: Params) -> Tensor:
        """The output on all rows, (members, rows)."""
        return self.outputs(params, slice(None))

    def spread(self, q: Tensor) -> Tensor:
        """Standard deviation of an output over the fitted rows, (members, 1)."""
        return q[:, : self.fitted].std(dim=1, keepdim=True, correction=0)

    def fit(self, params: Params, zero: Tensor, unit: Tensor) -> NDArray[np.float64]:
        """Loss curves on fitted and held-out rows, (2, members, points).

        Args:
            params: where to start.
            zero: the output that counts as 0: one number, or one for every member and row.
            unit: the change of the output that counts as 1, (members, 1).
        """
        copies = {name: tensor.detach().clone().requires_grad_() for name, tensor in params.items()}
        leaves = list(copies.values())

        def errors(rows: Rows) -> Tensor:
            change = self.outputs(copies, rows) - (zero[:, rows] if zero.dim() else zero)
            return (change / unit - self.target[rows]).square()

        adam = torch.optim.Adam(leaves, lr=self.lr, fused=True)
        batches = torch.from_numpy(self.order).to(self.target.device)
        curve = []
        for step in range(self.points[-1] + 1):
            if step in self.points:
                with torch.no_grad():
                    both = (slice(self.fitted), slice(self.fitted, None))
                    losses = torch.stack([errors(rows).mean(dim=1) for rows in both])
                curve.append(losses.double().cpu().numpy())
            if step < len(batches):
                with torch.enable_grad():
                    # Members share no parameter: the sum gives each the gradient of its own mean.
                    grads = torch.autograd.grad(errors(batches[step]).mean(dim=1).sum(), leaves)
                for leaf, grad in zip(leaves, grads, strict=True):
                    leaf.grad = grad
                adam.step()
        return np.stack(curve, axis=-1)
