"""Off-policyness by age: how likely today's policy is to do what was done when data came in."""

from __future__ import annotations

import numpy as np
import torch

from diagnostics.probes.common import at_least_one, record, rows_of, sample_window, stored_windows
from fog.events import Outline, Probe, ProbeCost, View

_EDGE = 1.0 - 1e-6
_ROWS = 4096


class OffPolicy(Probe):
    """log pi(a | s) and the distance |a - mu(s)| of stored actions, by insertion window.

    pi and mu are today's policy and its deterministic action. A sample of each window is enough:
    the error of a mean over 1024 transitions is a thirtieth of their standard deviation.

    Args:
        batch: transitions of each insertion window.
    """

    name = "offpolicy"

    def __init__(self, batch: int = 1024) -> None:
        self._batch = at_least_one(batch, "batch")

    def cost(self, run: Outline) -> ProbeCost:
        """The policy twice, for its action and for its density, on each stored window."""
        rows = self._batch * sum(-(-run.stored(at) // run.window_steps) for at in run.windows)
        return ProbeCost(2 * rows * run.policy_flops, len(run.windows))

    def on_start(self, view: View) -> None:
        """Refuse an agent without a known policy, before anything is trained."""
        if "actor" not in view.agent.networks:
            raise ValueError("it needs the policy: attach with one, or leave this probe out")

    def on_window(self, view: View) -> None:
        """Measure."""
        windows, width = stored_windows(view), view.facts.window_steps
        if not len(windows):
            return
        ids = [sample_window(view, int(window), self._batch) for window in windows]
        counts = np.array([len(each) for each in ids])
        joined = np.concatenate(ids)
        starts = np.cumsum(counts) - counts
        found = self._measure(view, joined)
        sizes = {name: np.add.reduceat(column, starts) / counts for name, column in found.items()}
        parts = {name: np.split(column, starts[1:]) for name, column in found.items()}
        record(
            view,
            "offpolicy",
            {
                "window": windows,
                "window_start": windows * width,
                "window_end": (windows + 1) * width,
                "count": counts,
                "age": view.replay.added - 1 - np.add.reduceat(joined, starts) / counts,
                "log_prob": sizes["log_prob"],
                "log_prob_std": [part.std() for part in parts["log_prob"]],
                "log_prob_median": [np.median(part) for part in parts["log_prob"]],
                "distance": sizes["distance"],
                "distance_std": [part.std() for part in parts["distance"]],
                "saturated": sizes["saturated"],
            },
        )

    def _measure(self, view: View, ids: np.ndarray) -> dict[str, np.ndarray]:
        agent, batch = view.agent, view.replay.take(ids)
        parts = []
        for start in range(0, len(ids), _ROWS):
            some = rows_of(batch, slice(start, start + _ROWS))
            distance = torch.linalg.vector_norm(some.action - agent.action(some.obs), dim=-1)
            saturated = (some.action.abs() > _EDGE).to(distance.dtype).mean(dim=-1)
            log_prob = agent.log_prob(some.obs, some.action)
            parts.append(torch.stack([log_prob, distance, saturated]).double().cpu().numpy())
        values = np.concatenate(parts, axis=1)
        return dict(zip(("log_prob", "distance", "saturated"), values, strict=True))
