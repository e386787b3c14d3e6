"""Looking inside a network: hidden outputs, and gradients at the inputs of activations."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from fog.networks.layers import Activation, activate


class LayerTap:
    """A tap that keeps every output and perturbs the input of an activation where asked to.

    With zeros that require gradients as perturbation, the gradient of a loss with respect to the
    perturbation is the gradient at the input of the activation, which is what the gradient-based
    dormancy score needs.
    """

    def __init__(self, perturbation: Mapping[str, Tensor] | None = None) -> None:
        self.layers: dict[str, Tensor] = {}
        self._perturbation = perturbation or {}

    def __call__(self, name: str, z: Tensor, activation: Activation | None) -> Tensor:
        """Record the output f(z), z perturbed if a perturbation of that name was given."""
        if name in self._perturbation:
            z = z + self._perturbation[name]
        self.layers[name] = activate(z, activation)
        return self.layers[name]
