"""Neuroplastic Expansion: masks, growth, its end, and TD3 around them."""

from __future__ import annotations

import pytest
import torch

from fog.agent import build_agent
from fog.algorithms import ne, topology
from fog.algorithms.state import clone_state
from fog.errors import ConfigError, UserError
from fog.records.sparsity import sparse_layers
from fog.records.specs import spec_of
from fog.settings.variants import resolve
from fog.training.device import compiles
from tests.fog.agent.agent_helpers import ACT, SIZE, make_agent, make_batch, one


def network(obs_dim, act_dim):
    config = resolve("HalfCheetah-v4", "ne")
    return build_agent(config, obs_dim, act_dim)._state


def test_masks_begin_as_sparse_as_the_published_ones():
    """HalfCheetah: input layers 0.02, hidden ones 0.84, heads dense; dog: 0.80 everywhere."""
    settings = resolve("HalfCheetah-v4", "ne").flat()
    cheetah, dog = (spec_of(settings, *size).critic(0) for size in ((17, 6), (223, 38)))
    rounded = {name: round(share, 2) for name, share in sparse_layers(cheetah).items()}
    assert rounded == {"hidden0.weight": 0.02, "hidden1.weight": 0.84, "hidden2.weight": 0.84}
    assert {round(share, 2) for share in sparse_layers(dog).values()} == {0.8}
    state = network(17, 6)
    assert topology.masked_share(state.critic, state.critic_mask) == pytest.approx(0.8, abs=1e-4)
    for name, mask in state.critic_mask.items():
        for weight, active in zip(state.critic[name], mask, strict=True):
            kept, masked = weight[active > 0].abs(), weight[active == 0]
            assert not masked.any() and kept.min() > 0


@pytest.mark.parametrize(("size", "steps"), [((223, 38), 191), ((17, 6), 189)])
def test_growth_ends_when_a_quarter_is_masked(size, steps):
    """After 191 steps of the topology on dog tasks: 19,100 updates. On HalfCheetah-v4 the input
    layer, nearly dense at birth, does not grow, and the rest is done a little earlier."""
    state = network(*size)
    grads = {name: torch.randn_like(value) for name, value in state.critic.items()}
    clock, made = state.clock, 0
    while not clock["critic_ended"]:
        clock["critic_calls"].fill_((made + 1) * topology.EVERY - 1)
        topology.learn_(
            state.critic, state.critic_mask, grads, state.critic_optimiser, clock, "critic"
        )
        made += 1
        # As training would: no active weight stays zero.
        for name, mask in state.critic_mask.items():
            state.critic[name].add_((state.critic[name] == 0) * mask * 1e-3)
    assert made == steps
    assert clock["critic_calls"] == 0
    before = state.critic_mask["hidden1.weight"].clone()
    clock["critic_calls"].fill_(topology.EVERY - 1)
    grads = {name: torch.randn_like(value) for name, value in state.critic.items()}
    topology.learn_(state.critic, state.critic_mask, grads, state.critic_optimiser, clock, "critic")
    after = state.critic_mask["hidden1.weight"]
    assert after.sum() == before.sum() and not torch.equal(after, before)


def test_a_step_of_the_topology_takes_the_largest_gradients_and_the_smallest_weights():
    weight = torch.tensor([[5.0, 0.1, 0.0], [0.0, 4.0, 0.0]])
    mask = (weight != 0).float()
    grad = torch.tensor([[9.0, 1.0, 2.0], [-8.0, 9.0, 0.5]])
    topology.change_(weight, mask, grad, active=3, grown=2, pruned=1)
    assert mask.tolist() == [[1, 0, 1], [1, 1, 0]]
    assert weight.tolist() == [[5.0, 0, 0], [0, 4.0, 0]]


def test_every_hundredth_update_changes_the_topology_and_not_the_optimiser():
    agent = make_agent("ne", width=64)
    agent.update(make_batch(99))
    before = clone_state(agent._state)
    agent.update(make_batch(1, seed=1))
    state = agent._state
    assert state.critic_optimiser.step == before.critic_optimiser.step == 99
    assert not torch.equal(
        state.critic_mask["hidden1.weight"], before.critic_mask["hidden1.weight"]
    )
    agent.update(make_batch(1, seed=2))
    assert agent._state.critic_optimiser.step == 100
    assert agent._state.actor_optimiser.step == 50
    for params, masks in (
        (state.critic, state.critic_mask),
        (state.target, state.critic_mask),
        (state.actor, state.actor_mask),
        (state.actor_target, state.actor_mask),
    ):
        assert all(not params[name][mask == 0].any() for name, mask in masks.items())


def test_half_of_the_batch_counts_while_few_neurons_are_active():
    agent, batch = make_agent("ne"), one(make_batch())
    noise, flag = torch.zeros(1, SIZE, ACT), torch.tensor(False)
    half = batch._replace(weight=torch.ones(SIZE))
    spoiled = half._replace(reward=half.reward + (torch.arange(SIZE) >= SIZE // 2) * 100.0)
    for active, same in ((0.1, True), (0.9, False)):
        states = [clone_state(agent._state) for _ in range(2)]
        for state, each in zip(states, (half, spoiled), strict=True):
            state.clock["active"].fill_(active)
            ne.update_(state, each, noise, flag, agent.hyper)
        equal = torch.equal(states[0].critic["head.bias"], states[1].critic["head.bias"])
        assert equal == same


def test_ne_is_never_compiled():
    config, cpu = resolve("dog-run", "ne"), torch.device("cpu")
    assert not compiles(config, cpu) and compiles(resolve("dog-run", "bro"), cpu)
    with pytest.raises(UserError, match="cannot be compiled"):
        compiles(config.replace(compile="on"), cpu)


def test_critics_of_ne_gain_no_blocks():
    with pytest.raises(ConfigError, match="maximal_depth"):
        make_agent("ne", maximal_depth=2)
