"""What the critic makes of the buffer: penultimate features of sampled transitions, for t-SNE."""

from __future__ import annotations

from typing import Any

from diagnostics.probes.common import noise, record, sample_ids
from fog.events import Change, Outline, Probe, ProbeCost, Update, View


class Features(Probe):
    """Features, Q and TD error of the online critic's first twin, with age and reward.

    The paper shows t-SNE of the critic's features after 0.2M steps (section on network
    expansion). The default takes that step and four more. Twins are independent networks of one
    shape, so one of them is enough, at half the size. The first snapshot at or after a chosen step
    is taken before a reset or an expansion on that step.

    Args:
        size: transitions per snapshot, drawn uniformly from the buffer.
        at: when, as shares of the run.
    """

    name = "features"

    def __init__(self, size: int = 2000, at: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0)) -> None:
        if size < 1 or not all(0 < share <= 1 for share in at):
            raise ValueError("size must be at least 1 and every share in (0, 1]")
        self._size = size
        self._at = sorted(at)
        self._taken = 0

    def cost(self, run: Outline) -> ProbeCost:
        """Losses, features and Q of each snapshot's transitions; features are what is large."""
        rows = sum(min(self._size, run.stored(round(at * run.steps))) for at in self._at)
        flops = rows * (run.loss_flops + 2 * run.value_flops)
        return ProbeCost(flops, len(self._at), rows * (4 * run.width + 20))

    def on_update(self, view: View, event: Update) -> None:
        """Take a snapshot when one is due."""
        self._take_if_due(view)

    def on_change(self, view: View, event: Change) -> None:
        """With less than one update per step, one may be due that no update has met yet."""
        if event.phase == "before":
            self._take_if_due(view)

    def on_end(self, view: View) -> None:
        """The last one, if the last step made no update."""
        self._take_if_due(view)

    def _take_if_due(self, view: View) -> None:
        due = sum(view.env_step >= round(share * view.facts.steps) for share in self._at)
        if due > self._taken:
            self._taken = due
            self._measure(view)

    def _measure(self, view: View) -> None:
        agent, ids = view.agent, sample_ids(view, self._size)
        batch = view.replay.take(ids)
        critic = agent.critics[0]
        q = agent.q_values(critic, batch.obs, batch.action)[0]
        target = agent.losses(batch, noise(view, len(ids)))[critic].target
        features = agent.features(critic, batch.obs, batch.action)[0]
        record(
            view,
            "features",
            {
                "transition": ids,
                "age": view.replay.added - 1 - ids,
                "reward": batch.reward.cpu().numpy(),
                "q": q.cpu().numpy(),
                "td_error": (target - q).cpu().numpy(),
                "features": features.cpu().numpy(),
            },
        )

    def state(self) -> dict[str, Any]:
        """Snapshots taken."""
        return {"taken": self._taken}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore it."""
        self._taken = state["taken"]
