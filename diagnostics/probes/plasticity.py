"""Plasticity: how fast a copy of the critic fits fresh random targets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from diagnostics.probes.common import at_least_one, record_rows, sample
from fog.events import Outline, Probe, ProbeCost, View

Params = dict[str, Tensor]


class Plasticity(Probe):
    """Fits a copy of every critic to noise for a few steps, at the end of each window.

    Each member's output is standardised by its own mean m and standard deviation s on the batch
    before the fit, and regressed on targets y ~ N(0, 1): loss = mean (((Q - m) / s) - y)^2, so it
    starts near 2 whatever the size of Q. The copy has its own optimiser (Adam, full batch); the
    agent is not touched.

    Args:
        batch: transitions with random targets.
        steps: optimiser steps.
        lr: learning rate.
    """

    name = "plasticity"

    def __init__(self, batch: int = 256, steps: int = 50, lr: float = 3e-4) -> None:
        self._batch = at_least_one(batch, "batch")
        self._steps = at_least_one(steps, "steps")
        self._lr = lr

    def cost(self, run: Outline) -> ProbeCost:
        """Forward and backward through the critics, about half of an update, in every step."""
        rows = len(run.windows) * (self._steps + 1) * self._batch
        return ProbeCost(0.48 * rows * run.update_flops, len(run.windows))

    def on_window(self, view: View) -> None:
        """Measure."""
        agent, batch = view.agent, sample(view, self._batch)
        rows = []
        for critic in agent.critics:

            def evaluate(params: Params, critic: str = critic) -> Tensor:
                return agent.evaluate(critic, params, batch.obs, batch.action)

            params = {
                name: tensor.detach().clone().requires_grad_()
                for name, tensor in agent.parameters(critic).items()
            }
            shape = evaluate(params).shape
            drawn = view.rng.standard_normal(tuple(shape), dtype=np.float32)
            curve = self._fit(params, evaluate, torch.from_numpy(drawn).to(agent.device))
            start, end = curve[0], curve[-1]
            row = {"critic": critic, "score": 1.0 - end / start, "area": np.mean(curve[1:]) / start}
            rows.append({**row, "loss_start": start, "loss_end": end})
        record_rows(view, "plasticity", rows)

    def _fit(
        self, params: Params, evaluate: Callable[[Params], Tensor], targets: Tensor
    ) -> list[float]:
        """Losses before the first step and after each."""
        with torch.no_grad():
            before = evaluate(params)
            mean = before.mean(dim=1, keepdim=True)
            spread = before.std(dim=1, keepdim=True, correction=0).clamp_min(1e-8)
        leaves = list(params.values())
        optimiser = torch.optim.Adam(leaves, lr=self._lr)
        curve = []
        with torch.enable_grad():
            for _ in range(self._steps + 1):
                loss = ((evaluate(params) - mean) / spread - targets).square().mean()
                curve.append(loss.item())
                for leaf, grad in zip(leaves, torch.autograd.grad(loss, leaves), strict=True):
                    leaf.grad = grad
                optimiser.step()
        return curve
