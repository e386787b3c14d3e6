"""Networks as pure functions of parameter trees: residual critics, a plain actor.

A tree is a flat dictionary of tensors. Its shape says everything about the network: input size,
width, ensemble size and depth, so growing a critic is adding keys.
"""

from fog.networks.actor import actor_forward, init_actor
from fog.networks.critic import (
    critic_forward,
    depth_of,
    grow_critic,
    init_critic,
    members,
)
from fog.networks.layers import Activation, Params, Tap, activate
from fog.networks.policy import (
    GaussianAction,
    LogStd,
    gaussian_log_density,
    sample_action,
    squashed_log_density,
)
from fog.networks.taps import LayerTap, actor_layers, critic_layers

__all__ = [
    "Activation",
    "GaussianAction",
    "LayerTap",
    "LogStd",
    "Params",
    "Tap",
    "activate",
    "actor_forward",
    "actor_layers",
    "critic_forward",
    "critic_layers",
    "depth_of",
    "gaussian_log_density",
    "grow_critic",
    "init_actor",
    "init_critic",
    "members",
    "sample_action",
    "squashed_log_density",
]
