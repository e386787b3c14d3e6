"""Validation loss: the training loss on transitions that are never trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from diagnostics.probes.common import noise, record_rows
from fog.events import Episode, Outline, Probe, ProbeCost, TransitionBatch, View


class Validation(Probe):
    """The critics' loss on the transitions of the evaluation episodes.

    They come from the deterministic policy and from separate seeds, so measuring does not affect
    training. Compared with the loss on the newest window of the buffer, this loss shows
    overfitting; it also includes the difference between the policies (deterministic, exploring).
    """

    name = "validation"

    def cost(self, run: Outline) -> ProbeCost:
        """The losses of every transition of every evaluation."""
        rows = run.evaluations * run.evaluated
        return ProbeCost(rows * run.loss_flops, run.evaluations)

    def on_evaluation(self, view: View, episodes: list[Episode]) -> None:
        """Measure."""
        whole = _transitions(episodes, view.agent.device)
        size, losses = view.agent.bulk_losses(len(whole.reward))
        parts: dict[str, list[Any]] = {}
        for start in range(0, len(whole.reward), size):
            batch = TransitionBatch(*(column[start : start + size] for column in whole))
            for critic, loss in losses(batch, noise(view, len(batch.reward))).items():
                pair = torch.stack([loss.loss, loss.target]).double().cpu().numpy()
                parts.setdefault(critic, []).append(pair)
        rows = []
        for critic, pieces in parts.items():
            loss, target = np.concatenate(pieces, axis=1)
            mean, variance = loss.mean(), target.var()
            scaled = mean / variance if variance > 0 else np.nan
            row = {"critic": critic, "count": len(loss), "mean": mean, "std": loss.std()}
            rows.append({**row, "target_variance": variance, "scaled": scaled})
        record_rows(view, "validation", rows)


def _transitions(episodes: list[Episode], device: torch.device) -> TransitionBatch:
    bootstrap = []
    for episode in episodes:
        bootstrap.append(np.ones(len(episode.rewards), np.float32))
        bootstrap[-1][-1] = 0.0 if episode.terminated else 1.0
    columns = (
        [episode.observations[:-1] for episode in episodes],
        [episode.actions for episode in episodes],
        [episode.rewards for episode in episodes],
        bootstrap,
        [episode.observations[1:] for episode in episodes],
    )
    joined = (torch.from_numpy(np.concatenate(column)).to(device) for column in columns)
    return TransitionBatch(*joined)
