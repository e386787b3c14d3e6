"""Looking inside a network: hidden outputs, and gradients at the inputs of activations."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from fog.networks.actor import actor_forward
from fog.networks.critic import critic_forward
from fog.networks.layers import Activation, Params, activate
from fog.networks.policy import LogStd


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


def critic_layers(
    params: Params,
    inputs: Tensor,
    activation: Activation,
    perturbation: Mapping[str, Tensor] | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Values (E, B) and every hidden output (E, B, width) in order of depth.

    Names: "stem", "block<i>.inner" (both after the activation), "block<i>.outer" (LayerNorm output
    before the residual sum) and "features" (the penultimate representation).
    """
    recorder = LayerTap(perturbation)
    values = critic_forward(params, inputs, activation, recorder)
    return values, recorder.layers


def actor_layers(
    params: Params,
    obs: Tensor,
    activation: Activation,
    log_std: LogStd,
    perturbation: Mapping[str, Tensor] | None = None,
) -> tuple[tuple[Tensor, Tensor], dict[str, Tensor]]:
    """(mean, log_std) and the outputs of "hidden0" and "hidden1" after their activation."""
    recorder = LayerTap(perturbation)
    gaussian = actor_forward(params, obs, activation, log_std, recorder)
    return gaussian, recorder.layers
