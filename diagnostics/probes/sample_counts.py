"""How often every transition has been drawn, and what its sampler's law predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diagnostics.metrics.expected_counts import count_moments, goodness_of_fit
from diagnostics.probes.common import record
from fog.events import Outline, Probe, ProbeCost, Update, View

_KNOWN = ("uniform", "decay")

_COUNT_BYTES = 2.0
"""Of one transition's draw count after compression."""


class SampleCounts(Probe):
    """Snapshots of the replay's exact counts at the end of each window.

    The expectation is exact for `uniform` and `decay`: it uses the draws actually made after each
    addition (warm-up and replay ratio included), see `diagnostics.metrics.expected_counts`. Other
    samplers have none, because their law is itself random: that of `per` follows the losses, that
    of `cuer` its own past draws.

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
        # A probe that joined late has not seen every draw, so it has no expectation.
        if facts.sampler in _KNOWN and history.sum() == draws:
            epsilon = facts.epsilon if facts.sampler == "decay" else 0.0
            expected, variance = count_moments(history, epsilon, facts.tau, facts.capacity)
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
