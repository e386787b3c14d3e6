"""Networks as pure functions of parameter trees: residual critics, a plain actor.

A tree is a flat dictionary of tensors. Its shape says everything about the network: input size,
width, ensemble size and depth, so growing a critic is adding keys.
"""

from fog.networks.actor import actor_forward, init_actor
from fog.networks.critic import (
    critic_forward,
    depth_of,
    init_critic,
    init_scaled,
    members,
)
from fog.networks.layers import Activation, Look, Params, Tap, activate
from fog.networks.policy import (
    GaussianAction,
    LogStd,
    gaussian_log_density,
    sample_action,
    squashed_log_density,
)
from fog.networks.pre_norm import init_pre_norm, pre_norm_forward
from fog.networks.taps import LayerTap

__all__ = [
    "Activation",
    "GaussianAction",
    "LayerTap",
    "LogStd",
    "Look",
    "Params",
    "Tap",
    "activate",
    "actor_forward",
    "critic_forward",
    "depth_of",
    "gaussian_log_density",
    "init_actor",
    "init_critic",
    "init_pre_norm",
    "init_scaled",
    "members",
    "pre_norm_forward",
    "sample_action",
    "squashed_log_density",
]
