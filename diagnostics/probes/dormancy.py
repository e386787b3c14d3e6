"""Dormant neurons: raw scores of every hidden neuron; thresholds are applied in analysis."""

from __future__ import annotations

from typing import Any

from diagnostics.probes.common import (
    MEASUREMENTS_PER_WINDOW,
    CadencedProbe,
    noise,
    record_rows,
    sample,
)
from fog.events import Change, Outline, ProbeCost, View


class Dormancy(CadencedProbe):
    """Mean |h| and mean |d loss / d z| of every neuron h = f(z) on a batch of the buffer.

    The first is Sokar et al.'s score before division by the layer's mean; the second follows the
    paper's text, which calls a neuron active if it receives gradient, and is taken at the input z
    of the activation, after LayerNorm: a neuron that is switched off on the whole batch scores 0.
    Measured at a cadence, and immediately before and after every reset and expansion, on the same
    batch before and after.

    Args:
        batch: transitions to average over.
        per_window: measurements in each window.
    """

    name = "dormancy"

    def __init__(self, batch: int = 1024, per_window: int = MEASUREMENTS_PER_WINDOW) -> None:
        super().__init__(batch, per_window)
        self._before: dict[str, Any] = {}

    def cost(self, run: Outline) -> ProbeCost:
        """Targets for each fitted network and gradients of all; two numbers for each neuron."""
        times = run.measurements(self._cadence.per_window) + 2 * run.changes
        each = run.fitted * run.loss_flops + 0.75 * run.update_flops
        return ProbeCost(times * self._batch * each, times, times * 8 * run.neurons)

    def on_change(self, view: View, event: Change) -> None:
        """Measure before and after, with the same transitions and noise."""
        if event.phase == "before":
            self._before = dict(view.rng.bit_generator.state)
        else:
            view.rng.bit_generator.state = self._before
        self.measure(view, f"{event.phase} {event.kind}")

    def measure(self, view: View, phase: str = "cadence") -> None:
        """Score every neuron on one sample."""
        agent = view.agent
        batch = sample(view, self._batch)
        rows: list[dict[str, Any]] = []
        for network in agent.networks:
            found = agent.hidden(network, batch, noise(view, len(batch.reward)))
            for layer, hidden in found.items():
                outputs = hidden.output.abs().mean(dim=1).cpu().numpy()
                gradients = hidden.gradient.abs().mean(dim=1).cpu().numpy()
                positive = (hidden.output > 0).double().mean(dim=(1, 2)).tolist()
                place = {"phase": phase, "network": network, "layer": layer}
                rows += [
                    {**place, "member": k, "activation": out, "gradient": grad, "positive": share}
                    for k, (out, grad, share) in enumerate(
                        zip(outputs, gradients, positive, strict=True)
                    )
                ]
        record_rows(view, "dormancy", rows)
