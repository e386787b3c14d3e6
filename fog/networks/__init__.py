"""Networks as pure functions of parameter trees: residual critics, a plain actor.

A tree is a flat dictionary of tensors. Its shape says everything about the network: input size,
width, ensemble size and depth, so growing a critic is adding keys.
"""

from fog.networks.actor import actor_forward as actor_forward
from fog.networks.actor import init_actor as init_actor
from fog.networks.critic import critic_forward as critic_forward
from fog.networks.critic import depth_of as depth_of
from fog.networks.critic import init_critic as init_critic
from fog.networks.critic import init_scaled as init_scaled
from fog.networks.critic import members as members
from fog.networks.layers import Activation as Activation
from fog.networks.layers import Look as Look
from fog.networks.layers import Params as Params
from fog.networks.layers import Tap as Tap
from fog.networks.layers import activate as activate
from fog.networks.policy import GaussianAction as GaussianAction
from fog.networks.policy import LogStd as LogStd
from fog.networks.policy import gaussian_log_density as gaussian_log_density
from fog.networks.policy import sample_action as sample_action
from fog.networks.policy import squashed_log_density as squashed_log_density
from fog.networks.pre_norm import init_pre_norm as init_pre_norm
from fog.networks.pre_norm import pre_norm_forward as pre_norm_forward
from fog.networks.taps import LayerTap as LayerTap
