"""Churn: how much the policy and Q move between two measurements on states that stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from diagnostics.probes.common import MEASUREMENTS_PER_WINDOW, Cadence, at_least_one, record, sample
from fog.events import Change, Probe, Update, View

FloatArray = NDArray[np.float32]


class Churn(Probe):
    """Mean change of the deterministic action and of Q on a fixed probe batch.

    The batch stays for a window and is then drawn anew, because states of the warm-up say little
    about an agent that has long left them. Both sides of a comparison always use the same batch.

    Args:
        batch: transitions in the probe batch.
        per_window: measurements in each window.
    """

    name = "churn"

    def __init__(self, batch: int = 512, per_window: int = MEASUREMENTS_PER_WINDOW) -> None:
        self._size = at_least_one(batch, "batch")
        self._cadence = Cadence(per_window)
        self._window = -1
        self._number = -1
        self._updates = 0
        self._changes = 0
        self._arrays: dict[str, FloatArray] = {}

    def on_change(self, view: View, event: Change) -> None:
        """Count resets and expansions: an interval that holds one shows it and not learning."""
        self._changes += event.phase == "after"

    def on_update(self, view: View, event: Update) -> None:
        """Compare with the last measurement if due, and remember this one."""
        if not self._cadence.due(view):
            return
        if self._arrays:
            self._compare(view)
        window = view.env_step // view.facts.window_steps
        if window != self._window:
            batch = sample(view, self._size)
            self._arrays["obs"] = batch.obs.cpu().numpy().copy()
            self._arrays["action"] = batch.action.cpu().numpy().copy()
            self._window, self._number = window, self._number + 1
        self._arrays["policy"], self._arrays["q"] = self._outputs(view)
        self._updates, self._changes = view.updates, 0

    def _outputs(self, view: View) -> tuple[FloatArray, FloatArray]:
        subject = view.subject
        obs = torch.from_numpy(self._arrays["obs"]).to(subject.device)
        action = torch.from_numpy(self._arrays["action"]).to(subject.device)
        q = subject.q_values(subject.critics[0], obs, action).mean(dim=0)
        return subject.action(obs).cpu().numpy(), q.cpu().numpy()

    def _compare(self, view: View) -> None:
        policy, q = self._outputs(view)
        before = self._arrays["q"].astype(np.float64)
        moved = np.linalg.norm(policy.astype(np.float64) - self._arrays["policy"], axis=1)
        q_churn, spread = np.abs(q - before).mean(), before.std()
        record(
            view,
            "churn",
            {
                "batch": [self._number],
                "updates": [view.updates - self._updates],
                "changes": [self._changes],
                "policy_churn": [moved.mean()],
                "q_churn": [q_churn],
                "q_churn_scaled": [q_churn / spread if spread > 0 else np.nan],
            },
        )

    def state(self) -> dict[str, Any]:
        """The probe batch and what the networks said about it."""
        names = ("_window", "_number", "_updates", "_changes")
        return {"next": self._cadence.next, **{n: getattr(self, n) for n in names}} | self._arrays

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore it."""
        self._cadence.next = state.pop("next")
        self._arrays = {k: at for k, at in state.items() if isinstance(at, np.ndarray)}
        for name, value in state.items():
            if name not in self._arrays:
                setattr(self, name, value)
