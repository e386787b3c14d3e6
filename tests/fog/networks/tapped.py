"""Networks with a tap that keeps every layer."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from fog.networks import Activation, LayerTap, LogStd, Params, actor_forward, critic_forward


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
