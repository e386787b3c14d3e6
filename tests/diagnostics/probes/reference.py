"""The training loss of each network, written a second time from its formulas."""

from __future__ import annotations

import torch

from tests.diagnostics.probes.stage import actor_loss
from tests.fog.networks.tapped import actor_layers, critic_layers


def reference_loss(stage, network, params, batch, noise):
    """Training loss per transition and penultimate features of a network with these parameters."""
    rule, found = stage.agent.hyper, stage.agent.networks.transition_losses(batch, noise)
    if network == "actor":
        policy, layers = actor_layers(params, batch.obs, rule.activation, rule.log_std)
        return actor_loss(stage, batch, noise, *policy), layers["hidden1"]
    if network == "value":
        values, layers = critic_layers(params, batch.obs, rule.activation)
        above = found["value"].target - values[0]
        weight = torch.where(above < 0, 1 - rule.expectile, rule.expectile)
        return weight * above.square(), layers["features"]
    inputs = torch.cat([batch.obs, batch.action], dim=-1)
    values, layers = critic_layers(params, inputs, rule.activation)
    target = found[network].target
    return (values - target).square().sum(dim=0), layers["features"]
