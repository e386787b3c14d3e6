"""What the critics make of old and new data: how far twins disagree, how steep Q is in actions."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import torch

from diagnostics.probes.common import at_least_one, record_rows, window_ids
from fog.events import Outline, Probe, ProbeCost, Transitions, View


class Disagreement(Probe):
    """Mean |Q1 - Q2| and mean |dQ/da| at stored actions, by insertion window.

    Args:
        size: transitions of each window, drawn uniformly.
    """

    name = "disagreement"

    def __init__(self, size: int = 256) -> None:
        self._size = at_least_one(size, "size")

    def cost(self, run: Outline) -> ProbeCost:
        """Forward, and backward to the action through each twin, of every critic."""
        stored = [run.stored(step) for step in run.windows]
        held = [-(-count // run.window_steps) for count in stored]
        rows = sum(min(count, n * self._size) for count, n in zip(stored, held, strict=True))
        flops = 2.7 * run.critics * rows * run.value_flops
        return ProbeCost(flops, len(run.windows), 50 * run.critics * sum(held))

    def on_window(self, view: View) -> None:
        """Measure; a reset or an expansion on this step comes afterwards."""
        rows = []
        for window, ids in window_ids(view, self._size):
            batch = view.replay.take(ids)
            for critic in view.agent.critics:
                place = {"critic": critic, "window": window, "count": len(ids)}
                place["age"] = view.replay.added - 1 - ids.mean()
                rows.append(place | _measure(view, critic, batch))
        record_rows(view, "disagreement", rows)


def _measure(view: View, critic: str, batch: Transitions) -> dict[str, Any]:
    agent = view.agent
    params = agent.parameters(critic)
    with torch.enable_grad():
        action = batch.action.detach().clone().requires_grad_()
        values = agent.evaluate(critic, params, batch.obs, action)
        slopes = [torch.autograd.grad(q.sum(), action, retain_graph=True)[0] for q in values]
    q = values.detach().double()
    pairs = [(q[i] - q[j]).abs().mean().item() for i, j in combinations(range(len(q)), 2)]
    steep = torch.stack(slopes).double().norm(dim=-1).mean().item()
    return {
        "disagreement": np.mean(pairs) if pairs else np.nan,
        "action_gradient": steep,
        "q_std": q.mean(dim=0).std(correction=0).item(),
    }
