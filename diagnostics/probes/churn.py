"""Churn: how much the policy and Q move on states that stay the same.

Between two measurements, thousands of updates apart, and by a single update.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diagnostics.probes.common import (
    MEASUREMENTS_PER_WINDOW,
    CadencedProbe,
    one_update,
    record,
    sample,
)
from fog.events import Change, ObservedAgent, Outline, ProbeCost, View

FloatArray = NDArray[np.float32]


class Churn(CadencedProbe):
    """Mean change of the deterministic action and of Q on a fixed probe batch.

    The batch is kept for a window and then redrawn, because states of the warm-up say little about
    an agent that has long left them. Both sides of a comparison always use the same batch.

    Churn of one update compares the agent with a copy of it after one more update, with its
    optimisers, on a batch of the training size from the probe's own stream.

    Args:
        batch: transitions in the probe batch.
        per_window: measurements in each window.
    """

    name = "churn"

    def __init__(self, batch: int = 512, per_window: int = MEASUREMENTS_PER_WINDOW) -> None:
        super().__init__(batch, per_window)
        self._window = -1
        self._number = -1
        self._updates = 0
        self._changes = 0
        self._arrays: dict[str, FloatArray] = {}

    def cost(self, run: Outline) -> ProbeCost:
        """Outputs before and after, and an update; what the networks said is kept."""
        times = run.measurements(self._cadence.per_window)
        flops = 3 * self._batch * run.value_flops + run.batch_size * run.update_flops
        kept = 4 * self._batch * (run.obs_dim + 2 * run.act_dim + 1)
        return ProbeCost(times * flops, 2 * times, state_bytes=kept)

    def on_change(self, view: View, event: Change) -> None:
        """Count resets and expansions: an interval that holds one shows it and not learning."""
        self._changes += event.phase == "after"

    def measure(self, view: View) -> None:
        """Compare with the last measurement, and remember this one."""
        if self._arrays:
            self._compare(view)
        window = view.env_step // view.facts.window_steps
        if window != self._window:
            batch = sample(view, self._batch)
            self._arrays["obs"] = batch.obs.cpu().numpy().copy()
            self._arrays["action"] = batch.action.cpu().numpy().copy()
            self._window, self._number = window, self._number + 1
        self._arrays["policy"], self._arrays["q"] = self._outputs(view.agent)
        self._updates, self._changes = view.updates, 0
        after = one_update(view)
        if after is not None:
            self._one_update(view, after)

    def _outputs(self, agent: ObservedAgent) -> tuple[FloatArray, FloatArray]:
        obs, action = self._on(agent, "obs"), self._on(agent, "action")
        q = agent.q_values(agent.critics[0], obs, action).mean(dim=0)
        return agent.action(obs).cpu().numpy(), q.cpu().numpy()

    def _on(self, agent: ObservedAgent, name: str) -> Tensor:
        return torch.from_numpy(self._arrays[name]).to(agent.device)

    def _compare(self, view: View) -> None:
        times = {"updates": [view.updates - self._updates], "changes": [self._changes]}
        moved = self._moved(view.agent)
        record(view, "churn", {"batch": [self._number], **times, **moved})

    def _one_update(self, view: View, after: ObservedAgent) -> None:
        obs = self._on(view.agent, "obs")
        kl = _kl(view.agent.policy(obs), after.policy(obs))
        columns = {"batch": [self._number], "policy_kl": [kl], **self._moved(after)}
        record(view, "update_churn", columns)

    def _moved(self, agent: ObservedAgent) -> dict[str, list[float]]:
        """How far outputs of the agent are from those remembered, on the probe batch."""
        policy, q = self._outputs(agent)
        before = self._arrays["q"].astype(np.float64)
        moved = np.linalg.norm(policy.astype(np.float64) - self._arrays["policy"], axis=1)
        q_churn, spread = np.abs(q - before).mean(), before.std()
        return {
            "policy_churn": [moved.mean()],
            "q_churn": [q_churn],
            "q_churn_scaled": [q_churn / spread if spread > 0 else np.nan],
        }

    def state(self) -> dict[str, Any]:
        """The probe batch and what the networks said about it."""
        names = ("_window", "_number", "_updates", "_changes")
        return super().state() | {name: getattr(self, name) for name in names} | self._arrays

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore it."""
        self._cadence.next = state.pop("next")
        self._arrays = {k: at for k, at in state.items() if isinstance(at, np.ndarray)}
        for name, value in state.items():
            if name not in self._arrays:
                setattr(self, name, value)


def _kl(old: tuple[Tensor, Tensor] | None, new: tuple[Tensor, Tensor] | None) -> float:
    """Mean over states of KL(old || new); squashing both alike does not change it."""
    if old is None or new is None:
        return np.nan
    mean, log_std = (tensor.double() for tensor in old)
    other, other_log_std = (tensor.double() for tensor in new)
    variance = (2 * (log_std - other_log_std)).exp()
    distance = (mean - other).square() * (-2 * other_log_std).exp()
    kl = other_log_std - log_std + 0.5 * (variance + distance - 1)
    return kl.sum(dim=-1).mean().item()
