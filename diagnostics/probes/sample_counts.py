"""How often every transition has been drawn, and what its sampler's law predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diagnostics.metrics.expected_counts import (
    FloatArray,
    count_moments,
    goodness_of_fit,
    linear_count_moments,
)
from diagnostics.probes.common import record
from fog.events import Facts, Outline, Probe, ProbeCost, Update, View

_COUNT_BYTES = 2.0
"""Of one transition's draw count after compression."""


class SampleCounts(Probe):
    """Snapshots of the replay's exact counts at the end of each window.

    The expectation is exact for `uniform`, `decay` and `swd`: it uses the draws that were really
    made after each addition (warm-up and replay ratio included), see
    `diagnostics.metrics.expected_counts`. It is left open for other samplers, whose law is itself
    random: that of `per` follows the losses, that of `cuer` its own past draws.

    Args:
        bins: rows of the summary; each holds equally many neighbouring transitions.
        full: also store the count of every single transition.
    """

    name = "sample_counts"

    def __init__(self, bins: int = 200, full: bool = True) -> None:
        self._bins = bins
        self._full = full
        self._draws: NDArray[np.int64] = np.zeros(1024, np.int64)

    def cost(self, run: Outline) -> ProbeCost:
        """No products; every transition's count in each snapshot, and a history of draws."""
        counts = round(_COUNT_BYTES * sum(run.windows)) if self._full else 0
        history = 1024
        while history < run.steps:
            history *= 2
        # The bins take as much as a file more.
        return ProbeCost(0, (3 + self._full) * len(run.windows), counts, 8 * history)

    def on_update(self, view: View, event: Update) -> None:
        """Remember how many were drawn while how many had been added."""
        added = view.replay.added
        if added > len(self._draws):
            self._draws = np.append(self._draws, np.zeros(max(added, len(self._draws)), np.int64))
        self._draws[added - 1] += event.ids.size

    def on_window(self, view: View) -> None:
        """Take a snapshot."""
        counts, facts = view.replay.counts, view.facts
        added, draws = len(counts), int(counts.sum(dtype=np.int64))
        history = np.zeros(added, np.int64)
        history[: len(self._draws)] = self._draws[:added]
        expected = variance = np.full(added, np.nan)
        chi_square = z = np.nan
        # A probe that joined late has not seen every draw, and then knows no expectation.
        moments = _moments(facts, history) if history.sum() == draws else None
        if moments is not None:
            expected, variance = moments
            chi_square, z = goodness_of_fit(counts, expected, variance)
        edges = np.linspace(0, added, min(self._bins, added) + 1).astype(np.int64)
        record(
            view,
            "sample_counts",
            {
                "start": edges[:-1],
                "end": edges[1:],
                "count": np.add.reduceat(counts, edges[:-1], dtype=np.int64),
                "expected": np.add.reduceat(expected, edges[:-1]),
                "variance": np.add.reduceat(variance, edges[:-1]),
            },
        )
        record(
            view,
            "sample_fit",
            {
                "sampler": [facts.sampler],
                "transitions": [added],
                "draws": [draws],
                "chi_square": [chi_square],
                "z": [z],
            },
        )
        if self._full:
            record(view, "sample_counts_full", {"counts": [counts]})

    def state(self) -> dict[str, Any]:
        """The history of draws."""
        return {"draws": self._draws}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the history of draws."""
        self._draws = state["draws"]


def _moments(facts: Facts, history: NDArray[np.int64]) -> tuple[FloatArray, FloatArray] | None:
    """Expectation and variance of the counts, where the sampler's law is known beforehand."""
    if facts.sampler == "swd":
        horizon = int(facts.settings["swd_horizon"])
        return linear_count_moments(history, horizon, facts.tau, facts.capacity)
    if facts.sampler in ("uniform", "decay"):
        epsilon = facts.epsilon if facts.sampler == "decay" else 0.0
        return count_moments(history, epsilon, facts.tau, facts.capacity)
    return None
