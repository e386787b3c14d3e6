"""Ranks of the critic's features, all from the same singular values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diagnostics.probes.common import MEASUREMENTS_PER_WINDOW, CadencedProbe, record_rows, sample
from fog.events import Outline, ProbeCost, View

FloatArray = NDArray[np.float64]


class Srank(CadencedProbe):
    """Ranks and singular values of the penultimate features of every member of every critic.

    Features are taken as they are, not centred. The functions below define the ranks.

    Args:
        batch: transitions whose features are ranked.
        delta: share of the singular values that may be left out.
        per_window: measurements in each window.
    """

    name = "srank"

    def __init__(
        self, batch: int = 2048, delta: float = 0.01, per_window: int = MEASUREMENTS_PER_WINDOW
    ) -> None:
        super().__init__(batch, per_window)
        self._delta = delta

    def cost(self, run: Outline) -> ProbeCost:
        """Features of all critics, a little less than half of the losses."""
        times = run.measurements(self._cadence.per_window)
        flops = 0.45 * times * self._batch * run.loss_flops
        return ProbeCost(flops, times, 8 * times * run.critics * run.width)

    def measure(self, view: View) -> None:
        """Rank the features of one sample."""
        batch = sample(view, self._batch)
        rows = []
        for critic in view.agent.critics:
            features = view.agent.features(critic, batch.obs, batch.action)
            for member, matrix in enumerate(features.cpu().numpy()):
                sigma = singular_values(matrix)
                rows.append(
                    {
                        "critic": critic,
                        "member": member,
                        "srank": srank(sigma, self._delta),
                        "effective_rank": effective_rank(sigma),
                        "pca_rank": pca_rank(sigma, self._delta),
                        "feature_rank": feature_rank(sigma, len(matrix)),
                        "width": matrix.shape[1],
                        "singular_values": sigma,
                    }
                )
        record_rows(view, "srank", rows)


def singular_values(features: NDArray[Any]) -> FloatArray:
    """All of them, largest first.

    They come from the smaller Gram matrix in double precision: several times faster than a
    decomposition of the features, and exact to about 1e-8 of the largest value.
    """
    matrix = np.asarray(features, dtype=np.float64)
    gram = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    sigma: FloatArray = np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0))
    return sigma


def srank(sigma: FloatArray, delta: float = 0.01) -> int:
    """Kumar et al.: the least k with sum_{i<=k} sigma_i >= (1 - delta) sum_i sigma_i, or 0."""
    return _least(np.cumsum(sigma), 1.0 - delta)


def pca_rank(sigma: FloatArray, delta: float = 0.01) -> int:
    """The least k whose directions hold a share 1 - delta of the sum of squares, or 0."""
    return _least(np.cumsum(sigma**2), 1.0 - delta)


def effective_rank(sigma: FloatArray) -> float:
    """Roy and Vetterli: exp of the entropy of sigma / sum(sigma); 0 for all-zero features."""
    total = sigma.sum()
    if total == 0.0:
        return 0.0
    shares = sigma[sigma > 0.0] / total
    return float(np.exp(-(shares * np.log(shares)).sum()))


def feature_rank(sigma: FloatArray, rows: int, epsilon: float = 0.01) -> int:
    """Lyle et al.: how many singular values of features / sqrt(rows) exceed epsilon."""
    return int((sigma / np.sqrt(rows) > epsilon).sum())


def _least(growing: FloatArray, share: float) -> int:
    if growing[-1] == 0.0:
        return 0
    return int(np.searchsorted(growing, share * growing[-1])) + 1
