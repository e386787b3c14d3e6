"""The dormancy probe against brute force on a buffer of 50 transitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diagnostics.probes.dormancy import Dormancy
from fog.algorithms import losses
from fog.events import Change
from tests.diagnostics.probes.stage import SIZE, actor_loss, build, normals, promote
from tests.fog.networks.tapped import critic_layers

CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def perturbed_loss(stage, network, batch, noise, layer, where, amount):
    """The network's loss with `amount` added to the input of one neuron's activation, each row."""
    networks, rule = stage.agent.networks, stage.agent.hyper
    width = stage.agent.spec.width
    if network == "actor":
        bump = {layer: torch.zeros(len(noise), width, dtype=torch.float64)}
        bump[layer][:, where[1]] = amount
        (mean, log_std), _ = networks.policy_layers(batch.obs, bump)
        return actor_loss(stage, batch, noise, mean, log_std)
    members = 1 if network == "value" else 2
    bump = {layer: torch.zeros(members, len(noise), width, dtype=torch.float64)}
    bump[layer][where[0], :, where[1]] = amount
    found = networks.transition_losses(batch, noise)
    if network == "value":
        values, _ = critic_layers(networks.value_net(), batch.obs, rule.activation, bump)
        above = found["value"].target - values[0]
        return torch.where(above < 0, 1 - rule.expectile, rule.expectile) * above.square()
    values, _ = networks.q_layers(batch.obs, batch.action, network, bump)
    target = found[network].target
    return (values - target).square().sum(dim=0)


def raise_offline(stage, amount):
    """Add to the offline critics' Q: far up the cloning gate opens, far down it closes."""
    with torch.no_grad():
        stage.agent._state.critic["head.bias"][2:] += amount


@pytest.mark.parametrize(("network", "layer"), [("online", "stem"), ("offline", "block1.inner")])
def test_dormancy_scores_of_critics(tmp_path, network, layer):
    check_dormancy(tmp_path, network, layer, bc_wait_updates=10_000)


@pytest.mark.parametrize("layer", ["stem", "block0.outer"])
def test_dormancy_scores_of_the_value_network(tmp_path, layer):
    check_dormancy(tmp_path, "value", layer)


@pytest.mark.parametrize("layer", ["hidden0", "hidden1"])
@pytest.mark.parametrize(("wait", "offline"), [(10_000, 0.0), (0, 100.0), (0, -100.0)])
def test_dormancy_scores_of_the_actor(tmp_path, layer, wait, offline):
    """Before behaviour cloning starts, and then with its gate open and closed."""
    check_dormancy(tmp_path, "actor", layer, offline, bc_wait_updates=wait)


def check_dormancy(tmp_path, network, layer, offline=0.0, **settings):
    stage = build(tmp_path, Dormancy(), **settings)
    raise_offline(stage, offline)
    stage.probes.change(Change("reset", "before"))
    rng = stage.rng("dormancy")
    batch = stage.everything()
    table = stage.read("dormancy").query("phase == 'before reset'")
    # The noise of earlier measurements comes first in the stream.
    first = stage.read("dormancy").query("phase == 'cadence'")["env_step"].unique()
    for rows in [*first, SIZE]:
        for name in stage.view.agent.networks:
            noise = normals(rng, int(rows))
            if rows == SIZE and name == network:
                wanted = noise
    row = table.query(f"network == '{network}' and layer == '{layer}' and member == 0").iloc[0]
    if network == "actor":
        outputs = stage.agent.networks.policy_layers(batch.obs)[1][layer]
    elif network == "value":
        params, activation = stage.agent.networks.value_net(), stage.agent.hyper.activation
        outputs = critic_layers(params, batch.obs, activation)[1][layer][0]
    else:
        outputs = stage.agent.networks.q_layers(batch.obs, batch.action, network)[1][layer][0]
    np.testing.assert_allclose(row["activation"], outputs.abs().mean(dim=0), **CLOSE)
    assert row["positive"] == (outputs.numpy() > 0).sum() / outputs.numel()
    for neuron in range(stage.agent.spec.width):
        step = 1e-6
        up, down = (
            perturbed_loss(stage, network, batch, wanted, layer, (0, neuron), sign * step)
            for sign in (1, -1)
        )
        slope = ((up - down) / (2 * step)).abs().mean().item()
        assert row["gradient"][neuron] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_dormancy_gradients_equal_autograd_to_rounding(tmp_path):
    stage = build(tmp_path, Dormancy(), variant="fog")
    batch, noise = stage.everything(), normals(np.random.default_rng(0), SIZE)
    networks = stage.agent.networks
    target = networks.transition_losses(batch, noise)["offline"].target
    for layer, hidden in stage.view.agent.hidden("offline", batch, noise).items():
        zero = torch.zeros_like(hidden.output, requires_grad=True)
        values, _ = networks.q_layers(batch.obs, batch.action, "offline", {layer: zero})
        loss = losses.critic_loss(values, target)
        (wanted,) = torch.autograd.grad(loss.sum(), [zero])
        torch.testing.assert_close(hidden.gradient, wanted, rtol=1e-9, atol=1e-12)


def test_the_cloning_actor_s_gradients_equal_autograd_to_rounding(tmp_path):
    """Gate open, then closed; small as its weight is, the cloning term must be seen to count."""
    stage = build(tmp_path, bc_wait_updates=0)
    batch, noise = stage.everything(), normals(np.random.default_rng(0), SIZE)
    found = []
    for amount in (100.0, -200.0):
        raise_offline(stage, amount)
        found.append(stage.view.agent.hidden("actor", batch, noise))
        for layer, hidden in found[-1].items():
            zero = torch.zeros_like(hidden.output[0], requires_grad=True)
            (mean, log_std), _ = stage.agent.networks.policy_layers(batch.obs, {layer: zero})
            loss = actor_loss(stage, batch, noise, mean, log_std)
            (wanted,) = torch.autograd.grad(loss.sum(), [zero])
            torch.testing.assert_close(hidden.gradient[0], wanted, rtol=1e-9, atol=1e-12)
    for layer in found[0]:
        change = (found[0][layer].gradient - found[1][layer].gradient).abs()
        assert change.mean() > 1e-4 * found[1][layer].gradient.abs().mean()


def test_dormancy_sees_every_layer_before_and_after_changes(tmp_path):
    stage = build(tmp_path, Dormancy())
    stage.probes.change(Change("expansion", "before"))
    stage.agent.expand()
    promote(stage.agent)
    stage.probes.change(Change("expansion", "after"))
    table = stage.read("dormancy")
    before = table[table["phase"] == "before expansion"]
    after = table[table["phase"] == "after expansion"]
    grown = set(after["layer"]) - set(before["layer"])
    assert grown == {"block2.inner", "block2.outer"}
    assert set(before["network"]) == {"online", "offline", "value", "actor"}
    # The same batch before and after: what did not change scores the same.
    same = ["network", "layer", "member"]
    pairs = before.merge(after, on=same).query("network == 'actor' or layer == 'stem'")
    for _, row in pairs.iterrows():
        assert np.array_equal(row["activation_x"], row["activation_y"])
    counted = before[before["network"] == "online"].groupby("member").size()
    assert list(counted) == [stage.agent.dense_layers - 3] * 2


def test_dormancy_cadence(tmp_path):
    stage = build(tmp_path, Dormancy(per_window=4))
    table = stage.read("dormancy")
    assert sorted(table["env_step"].unique()) == [17, 20, 25, 30, 35, 40, 45, 50]
