"""Effective rank of the critic's features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diagnostics.probes.common import MEASUREMENTS_PER_WINDOW, Cadence, at_least_one, record, sample
from fog.events import Probe, Update, View


class Srank(Probe):
    """srank_delta of the penultimate features (Kumar et al.), for every member of every critic.

    Args:
        batch: transitions whose features are ranked.
        delta: share of the singular values that may be left out.
        per_window: measurements in each window.
    """

    name = "srank"

    def __init__(
        self, batch: int = 2048, delta: float = 0.01, per_window: int = MEASUREMENTS_PER_WINDOW
    ) -> None:
        self._batch = at_least_one(batch, "batch")
        self._delta = delta
        self._cadence = Cadence(per_window)

    def on_update(self, view: View, event: Update) -> None:
        """Measure if due."""
        if not self._cadence.due(view):
            return
        batch = sample(view, self._batch)
        rows: dict[str, list[Any]] = {"critic": [], "member": [], "srank": [], "width": []}
        for critic in view.subject.critics:
            features = view.subject.features(critic, batch.obs, batch.action)
            for member, matrix in enumerate(features.cpu().numpy()):
                rows["critic"].append(critic)
                rows["member"].append(member)
                rows["srank"].append(srank(matrix, self._delta))
                rows["width"].append(matrix.shape[1])
        record(view, "srank", rows)

    def state(self) -> dict[str, Any]:
        """When to measure next."""
        return {"next": self._cadence.next}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore it."""
        self._cadence.next = state["next"]


def srank(features: NDArray[Any], delta: float = 0.01) -> int:
    """The least k with sum_{i<=k} sigma_i >= (1 - delta) sum_i sigma_i; 0 for all-zero features.

    The singular values come from the smaller Gram matrix in double precision: several times
    faster than a decomposition of the features, and exact to about 1e-8 of the largest value.
    """
    matrix = np.asarray(features, dtype=np.float64)
    gram = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    sigma = np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0))
    share = np.cumsum(sigma)
    if share[-1] == 0.0:
        return 0
    return int(np.searchsorted(share, (1.0 - delta) * share[-1])) + 1
