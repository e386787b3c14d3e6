"""What an update changes and what it leaves alone; the numbers are held to `reference`."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fog.algorithms.state import clone_state, flatten
from fog.networks import Look
from tests.fog.agent.agent_helpers import ACT, OBS, SIZE, make_agent, make_batch, one, same


def updated(agent, state, batch, noise, bc_active):
    """A copy of the state after one update, its metrics by name, and the TD errors."""
    new = clone_state(state)
    flag = torch.tensor(bc_active)
    metrics, td_error = agent.backend.update_(new, batch, noise, flag, agent.hyper)
    named = dict(zip(agent.backend.family.METRICS, metrics.tolist(), strict=True))
    return new, named, td_error


def perturbed(agent, seed=3):
    """The agent's state away from its initial symmetric point: offline and target differ."""
    g = torch.Generator().manual_seed(seed)
    state = clone_state(agent._state)
    for tree in (state.critic, state.target, state.value, state.actor):
        for tensor in tree.values():
            tensor.add_(0.05 * torch.randn(tensor.shape, generator=g))
    return state


def test_cloning_changes_the_actor_only_and_only_when_active():
    agent = make_agent(bc_weight=0.5)
    state = perturbed(agent)
    state.critic["head.bias"][2:] += 50.0
    batch, noise = one(make_batch()), torch.zeros(2, SIZE, ACT)
    off, _, _ = updated(agent, state, batch, noise, False)
    on, _, _ = updated(agent, state, batch, noise, True)
    assert same(off.critic, on.critic) and same(off.value, on.value)
    assert not same(off.actor, on.actor)


def test_update_depends_on_nothing_but_its_arguments():
    agent = make_agent()
    batch, noise = one(make_batch()), torch.zeros(2, SIZE, ACT)
    new, again = (updated(agent, agent._state, batch, noise, True)[0] for _ in range(2))
    assert same(dict(flatten(new)), dict(flatten(again)))
    assert not same(dict(flatten(agent._state)), dict(flatten(new)))


def test_sac_half_of_obac_is_sac():
    """The offline networks never touch the online ones while cloning is off."""
    settings = {"target_entropy": -1.0, "weight_decay": 1e-4, "expansion_updates": ()}
    obac, sac = make_agent("fog", **settings), make_agent("fog-sac", **settings)
    batches = make_batch(5)
    obac.update(batches), sac.update(batches)
    for name, tensor in sac._state.critic.items():
        torch.testing.assert_close(tensor, obac._state.critic[name][:2])
    for name, tensor in sac._state.actor.items():
        torch.testing.assert_close(tensor, obac._state.actor[name])
    assert sac._state.value == {}


def test_importance_weights_scale_critic_losses_and_nothing_else():
    agent = make_agent(bc_wait_updates=0)
    batch, noise = one(make_batch()), torch.zeros(2, SIZE, ACT)
    zero = batch._replace(weight=torch.zeros(SIZE))
    new, named, td = updated(agent, agent._state, zero, noise, False)
    assert named["critic_loss"] == named["offline_critic_loss"] == 0
    assert named["value_loss"] > 0 and (td > 0).any()
    assert not new.critic_optimiser.mean["stem.weight"].any()
    full, _, full_td = updated(agent, agent._state, batch, noise, False)
    assert same(new.value, full.value), "V is unweighted"
    assert torch.equal(td, full_td), "priorities are unweighted"


@pytest.mark.parametrize("backend", ["auto", "plain"])
@pytest.mark.parametrize("variant", ["fog", "sac", "fog-sac"])
def test_transition_losses_are_the_training_losses(variant, backend):
    agent = make_agent(variant, backend=backend)
    agent.update(make_batch(3))
    batch = one(make_batch(seed=5))._replace(weight=torch.ones(SIZE))
    noise = torch.randn(2, SIZE, ACT, generator=torch.Generator().manual_seed(0))
    probe = agent.networks.transition_losses(batch, noise[0])
    _, named, td = updated(agent, agent._state, batch, noise, False)
    columns = {"online": "critic_loss", "offline": "offline_critic_loss", "value": "value_loss"}
    assert set(probe) == (set(columns) if agent.hyper.offline else {"online"})
    for network, found in probe.items():
        assert found.loss.shape == (SIZE,)
        assert found.loss.mean().item() == pytest.approx(named[columns[network]], rel=1e-5)
    q = agent.networks.q_values(batch.obs, batch.action)
    want = np.abs(q.double().numpy() - probe["online"].target.double().numpy()).max(axis=0)
    np.testing.assert_allclose(td.numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("variant", ["fog", "sac"])
def test_the_loss_of_one_network_is_its_part_of_the_training_losses(variant):
    agent = make_agent(variant, bc_wait_updates=0)
    agent.update(make_batch(3))
    batch, noise = one(make_batch(seed=5)), torch.zeros(SIZE, ACT)
    networks, loss = agent.networks, agent.backend.family.network_loss
    trees = {"online": networks.critic("online")}
    if agent.hyper.offline:
        trees |= {"offline": networks.critic("offline"), "value": networks.value_net()}
    for name, found in networks.transition_losses(batch, noise).items():
        look = Look(name, trees[name], found.target)
        args = (networks.state, batch, noise, True, agent.hyper)
        torch.testing.assert_close(loss(look, *args), found.loss)


def test_target_entropy_is_per_dimension_in_the_config():
    assert make_agent("fog").hyper.target_entropy == -ACT / 2
    assert make_agent("sac", target_entropy=-1.0).hyper.target_entropy == -ACT
    assert math.exp(make_agent()._state.temperature["log"]) == 1.0


def test_mixed_precision_trains_close_to_full_precision():
    full, mixed = make_agent(), make_agent(precision="bfloat16")
    batches = make_batch(5)
    a, b = full.update(batches), mixed.update(batches)
    assert mixed.backend.update_ is mixed.backend.family.update_, "the fast form has no bfloat16"
    assert b.finite
    assert b.metrics["critic_loss"] == pytest.approx(a.metrics["critic_loss"], rel=0.1)
    assert all(t.dtype == torch.float32 for _, t in flatten(mixed._state))
    assert a.metrics != b.metrics, "bfloat16 must really be used"
    assert full._state.critic["stem.weight"].shape[1] == OBS + ACT
