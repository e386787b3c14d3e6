"""Gradient dormancy against networks written a second time, in double precision.

The gradient is taken at the input of the activation. There a ReLU neuron that is off on the whole
batch scores exactly 0; at its output, where the score was once taken, it would not.
"""

from __future__ import annotations

import pytest
import torch

from fog.probing.observed import ObservedFogAgent
from tests.fog.agent.agent_helpers import ACT, doubled, make_agent, make_batch, one

WIDTH, ROWS = 6, 12
DEAD, UNHEARD = 2, 4
PLAIN = {"variant": "sac", "critic_layer_norm": False, "actor_layer_norm": False}
NORMALISED = {"variant": "fog", "activation": "relu", "actor_layer_norm": True}


def build(**settings):
    agent = make_agent(width=WIDTH, **settings)
    agent._set_state(doubled(agent._state))
    batch = type(one(make_batch()))(*(part.double() for part in one(make_batch(size=ROWS))))
    noise = torch.randn(ROWS, ACT, generator=torch.Generator().manual_seed(1)).double()
    return ObservedFogAgent(agent), batch, noise


def kill(params, key, neuron):
    """Switch a ReLU neuron off for every input, in every member."""
    with torch.no_grad():
        if f"{key}.scale" in params:
            params[f"{key}.scale"][..., neuron] = 0.0
            params[f"{key}.offset"][..., neuron] = -1.0
        else:
            params[f"{key}.bias"][..., neuron] = -1e3


def first_layers(params):
    """Dense layers that follow one another before any block and the head."""
    names = [name.removesuffix(".weight") for name in params if name.endswith(".weight")]
    return [name for name in names if name != "head" and not name.startswith("block")]


def forward(params, x, activation, seen=None, bump=None):
    """One member or an actor, written out: the head's outputs.

    `seen` gets (z, h) of each layer; `bump` is added to the z of the layers it names.
    """

    def layer(key, x, last=False):
        u = x @ params[f"{key}.weight"] + params[f"{key}.bias"]
        if f"{key}.scale" in params:
            centred = u - u.mean(-1, keepdim=True)
            spread = (centred.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
            u = centred / spread * params[f"{key}.scale"] + params[f"{key}.offset"]
        if bump is not None and key in bump:
            u = u + bump[key]
        h = u
        if not last:
            below = torch.zeros_like(u) if activation == "relu" else torch.expm1(u)
            h = torch.where(u > 0, u, below)
        if seen is not None:
            seen[key] = (u, h)
        return h

    for key in first_layers(params):
        x = layer(key, x)
    block = 0
    while f"block{block}.inner.weight" in params:
        x = x + layer(f"block{block}.outer", layer(f"block{block}.inner", x), last=True)
        block += 1
    return x @ params["head.weight"] + params["head.bias"]


def member_of(observed, network, member):
    return {name: tensor[member].clone() for name, tensor in observed.parameters(network).items()}


def squared_error(params, batch, target, activation, **looking):
    inputs = torch.cat([batch.obs, batch.action], dim=-1)
    return (forward(params, inputs, activation, **looking)[:, 0] - target).square()


@pytest.mark.parametrize("settings", [PLAIN, NORMALISED, {"variant": "fog"}])
def test_gradients_at_the_inputs_of_activations_by_brute_force(settings):
    observed, batch, noise = build(**settings)
    activation = "relu" if settings != {"variant": "fog"} else "elu"
    target = observed.losses(batch, noise)["online"].target
    params = member_of(observed, "online", 1)
    found = observed.hidden("online", batch, noise)
    seen: dict = {}
    squared_error(params, batch, target, activation, seen=seen)
    assert list(found) == list(seen)
    step = 1e-6
    for layer, hidden in found.items():
        torch.testing.assert_close(hidden.output[1], seen[layer][1], rtol=1e-9, atol=1e-9)
        for neuron in range(WIDTH):
            bump = torch.zeros(ROWS, WIDTH, dtype=torch.float64)
            bump[:, neuron] = step
            up, down = (
                squared_error(params, batch, target, activation, bump={layer: sign * bump})
                for sign in (1, -1)
            )
            slope = (up - down) / (2 * step)
            torch.testing.assert_close(
                hidden.gradient[1][:, neuron], slope, rtol=1e-5, atol=1e-5 * slope.abs().max()
            )


@pytest.mark.parametrize("settings", [PLAIN, NORMALISED])
def test_a_dead_neuron_scores_zero_although_its_output_is_wanted(settings):
    observed, batch, noise = build(**settings)
    for network in ("online", "actor"):
        params = observed.parameters(network)
        for key in first_layers(params):
            kill(params, key, DEAD)
        for key in first_layers(params):
            hidden = observed.hidden(network, batch, noise)[key]
            assert (hidden.output[..., DEAD] == 0).all()
            score = hidden.gradient.abs().mean(dim=1)
            assert (score[:, DEAD] == 0).all()
            assert (score > 0).any(dim=-1).all()
    # At the output the layers above pull at it all the same: there it would look active.
    target = observed.losses(batch, noise)["online"].target
    seen: dict = {}
    leaves = {k: v.requires_grad_() for k, v in member_of(observed, "online", 0).items()}
    loss = squared_error(leaves, batch, target, "relu", seen=seen)
    _, output = seen["stem"]
    (pull,) = torch.autograd.grad(loss.sum(), [output])
    assert pull[:, DEAD].abs().mean() > 0.1 * pull.abs().mean()


def incoming(observed, batch, noise, key):
    """By neuron of a layer of the first twin: do its incoming weights and bias get gradient?"""
    target = observed.losses(batch, noise)["online"].target
    leaves = {k: v.requires_grad_() for k, v in member_of(observed, "online", 0).items()}
    loss = squared_error(leaves, batch, target, "relu").mean()
    wanted = [leaves[f"{key}.weight"], leaves[f"{key}.bias"]]
    weight, bias = torch.autograd.grad(loss, wanted)
    return (weight != 0).any(dim=0) | (bias != 0).reshape(-1)


def test_without_layer_norm_a_score_of_zero_means_no_weight_gradient():
    observed, batch, noise = build(**PLAIN)
    params = observed.parameters("online")
    layers = first_layers(params)
    assert len(layers) == 2
    for key in layers:
        kill(params, key, DEAD)
    with torch.no_grad():
        # Active, but nobody listens.
        params[f"{layers[1]}.weight"][:, UNHEARD, :] = 0.0
    for key in layers:
        score = observed.hidden("online", batch, noise)[key].gradient[0].abs().mean(dim=0)
        learns = incoming(observed, batch, noise, key)
        assert torch.equal(score > 0, learns)
        assert not learns[DEAD] and learns.any()
    first = observed.hidden("online", batch, noise)[layers[0]]
    assert (first.output[0, :, UNHEARD] != 0).any()
    assert not incoming(observed, batch, noise, layers[0])[UNHEARD]


def test_layer_norm_passes_some_gradient_on_to_a_dead_neuron_s_weights():
    """Its weights move the mean and the spread by which the other neurons are normalised."""
    observed, batch, noise = build(**NORMALISED)
    kill(observed.parameters("online"), "stem", DEAD)
    score = observed.hidden("online", batch, noise)["stem"].gradient[0].abs().mean(dim=0)
    assert score[DEAD] == 0
    assert incoming(observed, batch, noise, "stem")[DEAD]


def test_the_outer_layers_have_no_activation_and_are_seen_as_they_are():
    observed, batch, noise = build(variant="fog")
    target = observed.losses(batch, noise)["online"].target
    seen: dict = {}
    leaves = {k: v.requires_grad_() for k, v in member_of(observed, "online", 0).items()}
    loss = squared_error(leaves, batch, target, "elu", seen=seen)
    z, h = seen["block0.outer"]
    assert z is h
    hidden = observed.hidden("online", batch, noise)["block0.outer"]
    (wanted,) = torch.autograd.grad(loss.sum(), [z])
    torch.testing.assert_close(hidden.gradient[0], wanted, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(hidden.output[0], z.detach(), rtol=1e-9, atol=1e-12)
