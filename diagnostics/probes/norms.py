"""Norms of parameters, gradients and features of every network."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch import Tensor

from diagnostics.probes.common import (
    MEASUREMENTS_PER_WINDOW,
    Cadence,
    at_least_one,
    noise,
    record,
    sample,
)
from fog.events import Probe, Update, View


class Norms(Probe):
    """Euclidean norms; the twins of a critic count as one network.

    Args:
        batch: transitions over which the loss of the gradient, and feature norms, are averaged.
        per_window: measurements in each window.
    """

    name = "norms"

    def __init__(self, batch: int = 1024, per_window: int = MEASUREMENTS_PER_WINDOW) -> None:
        self._batch = at_least_one(batch, "batch")
        self._cadence = Cadence(per_window)

    def on_update(self, view: View, event: Update) -> None:
        """Measure if due."""
        if not self._cadence.due(view):
            return
        subject, batch = view.subject, sample(view, self._batch)
        rows = []
        for network in subject.networks:
            parameters = subject.parameters(network).values()
            drawn = noise(view, len(batch.reward))
            features = subject.features(network, batch.obs, batch.action)
            rows.append(
                {
                    "network": network,
                    "parameters": sum(tensor.numel() for tensor in parameters),
                    "parameter_norm": _norm(parameters),
                    "gradient_norm": _norm(subject.gradients(network, batch, drawn).values()),
                    "feature_norm": features.double().norm(dim=-1).mean().item(),
                }
            )
        record(view, "norms", {name: [row[name] for row in rows] for name in rows[0]})

    def state(self) -> dict[str, Any]:
        """When to measure next."""
        return {"next": self._cadence.next}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore it."""
        self._cadence.next = state["next"]


def _norm(tensors: Iterable[Tensor]) -> float:
    return float(np.sqrt(sum(t.detach().double().square().sum().item() for t in tensors)))
