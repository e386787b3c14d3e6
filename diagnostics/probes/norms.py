"""Norms of parameters, gradients, updates and features: of every network, and of its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diagnostics.probes.common import (
    MEASUREMENTS_PER_WINDOW,
    CadencedProbe,
    noise,
    one_update,
    record_rows,
    sample,
)
from fog.events import Change, ObservedAgent, Outline, ProbeCost, View

_BIRTH = "birth/"


class Norms(CadencedProbe):
    """Euclidean norms; the twins of a critic count as one network.

    Also, by layer, what one update changes, and the distance of parameters from their initial
    values: at the start, at a reset, or at the expansion that added them. What one update changes
    is measured on a copy of the agent, see `fog.events.ObservedAgent.updated`.

    Args:
        batch: transitions over which the loss of the gradient, and feature norms, are averaged.
        per_window: measurements in each window.
    """

    name = "norms"

    def __init__(self, batch: int = 1024, per_window: int = MEASUREMENTS_PER_WINDOW) -> None:
        super().__init__(batch, per_window)
        self._births: dict[str, NDArray[Any]] = {}
        self._born: dict[str, int] = {}

    def cost(self, run: Outline) -> ProbeCost:
        """Targets and gradients of all networks, an update; a copy of every parameter is kept."""
        times = run.measurements(self._cadence.per_window)
        each = run.fitted * run.loss_flops + 1.25 * run.update_flops
        flops = self._batch * each + run.batch_size * run.update_flops
        numbers = 50 * times * run.tensors
        return ProbeCost(times * flops, 2 * times, numbers, 4 * run.parameters + 300 * run.tensors)

    def on_start(self, view: View) -> None:
        """Remember the initial parameters, unless a checkpoint restored them."""
        self._remember(view)

    def on_change(self, view: View, event: Change) -> None:
        """After a reset all initial values are new; after an expansion only those it added."""
        if event.phase == "before":
            return
        if event.kind == "reset":
            self._births.clear()
        self._remember(view)

    def measure(self, view: View) -> None:
        """Norms of every network on one sample, and of its tensors."""
        self._remember(view)
        agent, batch = view.agent, sample(view, self._batch)
        networks: list[dict[str, Any]] = []
        gradients: dict[str, Mapping[str, Tensor]] = {}
        for network in agent.networks:
            parameters = agent.parameters(network).values()
            drawn = noise(view, len(batch.reward))
            features = agent.features(network, batch.obs, batch.action)
            gradients[network] = agent.gradients(network, batch, drawn)
            networks.append(
                {
                    "network": network,
                    "parameters": sum(tensor.numel() for tensor in parameters),
                    "parameter_norm": _norm(parameters),
                    "gradient_norm": _norm(gradients[network].values()),
                    "feature_norm": features.double().norm(dim=-1).mean().item(),
                }
            )
        after = one_update(view)
        tensors = [
            row
            for network in agent.networks
            for row in self._layers(agent, network, gradients[network], after)
        ]
        record_rows(view, "norms", networks)
        record_rows(view, "layer_norms", tensors)

    def _layers(
        self,
        agent: ObservedAgent,
        network: str,
        gradients: Mapping[str, Tensor],
        after: ObservedAgent | None,
    ) -> Iterable[dict[str, Any]]:
        """A row for every weight, bias and so on."""
        moved = None if after is None else after.parameters(network)
        for name, tensor in agent.parameters(network).items():
            layer, _, parameter = name.rpartition(".")
            key = f"{network}/{name}"
            birth = torch.from_numpy(self._births[key]).to(tensor.device)
            norm, gradient = _norm([tensor]), _norm([gradients[name]])
            update = np.nan if moved is None else _distance(moved[name], tensor)
            yield {
                "network": network,
                "layer": layer,
                "parameter": parameter,
                "size": tensor.numel(),
                "norm": norm,
                "gradient_norm": gradient,
                "update_norm": update,
                "gradient_ratio": gradient / norm if norm > 0 else np.nan,
                "effective_lr": update / norm if norm > 0 else np.nan,
                "birth_distance": _distance(tensor, birth),
                "born": self._born[key],
            }

    def _remember(self, view: View) -> None:
        """Copy what is new: a name that was not there, or one of another shape."""
        known, born = self._births, self._born
        self._births, self._born = {}, {}
        for network in view.agent.networks:
            for name, tensor in view.agent.parameters(network).items():
                key = f"{network}/{name}"
                old = key in known and known[key].shape == tuple(tensor.shape)
                self._births[key] = known[key] if old else tensor.detach().cpu().numpy().copy()
                self._born[key] = born[key] if old else view.env_step

    def state(self) -> dict[str, Any]:
        """When to measure next, and the initial value of every parameter."""
        births = {_BIRTH + key: array for key, array in self._births.items()}
        return {**super().state(), "born": self._born, **births}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore it."""
        super().load_state(state)
        self._born = state.get("born", {})
        names = (name for name in state if name.startswith(_BIRTH))
        self._births = {name.removeprefix(_BIRTH): state[name] for name in names}


def _distance(one: Tensor, other: Tensor) -> float:
    return _norm([one.detach().double() - other.detach().double()])


def _norm(tensors: Iterable[Tensor]) -> float:
    # Added up where they are: one read from the device, whatever the number of tensors.
    return float(np.sqrt(float(sum(t.detach().double().square().sum() for t in tensors))))
