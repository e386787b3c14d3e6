"""Acting, growing, restarting, saving: what an agent keeps and what it does not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fog.algorithms.state import flatten
from fog.errors import UserError
from fog.records.sizes import NetworkSpec
from fog.seeding import integer_seed
from fog.settings.variants import VARIANTS, resolve
from tests.fog.agent.agent_helpers import ACT, OBS, make_agent, make_batch, same

GROWING = {"expansion_updates": (3, 5), "bc_wait_updates": 4}


def snapshot(agent):
    return {k: v.clone() for k, v in flatten(agent._state)}


def test_act_shapes_range_and_repeatability():
    agent = make_agent()
    obs = np.random.default_rng(0).standard_normal((7, OBS))
    many = agent.act(obs)
    assert np.array_equal(many, agent.act(obs, deterministic=True))
    assert np.array_equal(many, agent.act(obs, deterministic=True, rng=np.random.default_rng(1)))
    assert many.shape == (7, ACT) and many.dtype == np.float32
    np.testing.assert_allclose(agent.act(obs[2], deterministic=True), many[2], rtol=1e-5)
    mean, log_std = agent.networks.policy(torch.from_numpy(obs).float())
    np.testing.assert_allclose(many, torch.tanh(mean).numpy(), rtol=1e-6)
    sampled = agent.act(obs, rng=np.random.default_rng(1))
    noise = np.random.default_rng(1).standard_normal((7, ACT), dtype=np.float32)
    want = np.tanh(mean.numpy() + np.exp(log_std.numpy()) * noise)
    np.testing.assert_allclose(sampled, want, rtol=1e-5, atol=1e-6)
    assert (np.abs(agent.act(1e3 * obs, rng=np.random.default_rng(0))) <= 1).all()


def test_act_refuses_a_wrong_size_and_sampling_without_rng():
    agent = make_agent()
    with pytest.raises(ValueError, match="expected \\(5,\\)"):
        agent.act(np.zeros(OBS + 1), deterministic=True)
    with pytest.raises(ValueError, match="needs rng"):
        agent.act(np.zeros(OBS), deterministic=False)


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_every_variant_updates(variant):
    agent = make_agent(variant)
    stats = agent.update(make_batch(3))
    assert stats.finite and stats.updates == 3
    assert stats.td_error.shape == (3, 16) and (stats.td_error >= 0).all()
    assert agent.updates == agent.total_updates == 3
    assert ("value_loss" in stats.metrics) == agent.hyper.offline


def test_same_seed_same_bits_and_another_seed_other_bits():
    a, b, c = make_agent(), make_agent(), make_agent(seed=1)
    for agent in (a, b, c):
        agent.update(make_batch(4))
    assert same(a.state_dict(), b.state_dict())
    assert not torch.equal(a._state.actor["head.weight"], c._state.actor["head.weight"])


def test_several_batches_in_one_call_are_several_calls():
    """Also where the OBAC wait ends inside the call."""
    whole = make_agent(bc_wait_updates=3, bc_weight=0.5)
    split = make_agent(bc_wait_updates=3, bc_weight=0.5)
    batches = make_batch(6)
    for agent in (whole, split):
        agent._state.critic["head.bias"][2:] += 50.0
    stats = whole.update(batches)
    gates = []
    for index in range(6):
        part = split.update(type(batches)(*(t[index : index + 1] for t in batches)))
        gates.append(part.metrics["bc_gate"])
    assert same(whole.state_dict(), split.state_dict())
    assert gates == [0, 0, 0, 1, 1, 1]
    assert stats.metrics["bc_gate"] == 0.5


def test_offline_twins_start_as_copies_and_targets_as_copies():
    state = make_agent()._state
    for name, tensor in state.critic.items():
        assert torch.equal(tensor[:2], tensor[2:])
        assert torch.equal(tensor, state.target[name])
        assert tensor.data_ptr() != state.target[name].data_ptr()


def test_expansion_keeps_old_parameters_and_rebuilds_critic_optimisers():
    agent = make_agent()
    agent.update(make_batch(3))
    before = snapshot(agent)
    agent.expand()
    after = snapshot(agent)
    fresh = {k for k in after if "block2" in k}
    assert agent.depth == 3 and agent.dense_layers == 8
    for name, tensor in before.items():
        if name.startswith(("critic_optimiser", "value_optimiser")):
            continue
        assert torch.equal(after[name], tensor), name
    for name in after:
        if name.startswith(("critic_optimiser/", "value_optimiser/")) and not name.endswith("/lr"):
            assert not after[name].any(), name
    assert before["actor_optimiser/step"] == 3 == after["actor_optimiser/step"]
    assert {k.split("/")[0] for k in fresh if "optimiser" not in k} == {"critic", "target", "value"}
    for name in fresh:
        if name.startswith("critic/"):
            assert torch.equal(after[name], after[name.replace("critic/", "target/")])
    block = after["critic/block2.inner.weight"]
    assert not torch.equal(block[0], block[1]) and not torch.equal(block[0], block[2])
    for index in range(4):
        torch.testing.assert_close(block[index].T @ block[index], 2 * torch.eye(16))


@pytest.mark.parametrize(
    ("variant", "rates"),
    [
        ("fog", [3e-4, 3e-4 * 6 / 8, 3e-4 * 6 / 10]),
        ("expanded-sac", [3e-4, 3e-4 * 3 / 5, 3e-4 * 3 / 7]),
    ],
)
def test_learning_rate_decays_with_dense_layers(variant, rates):
    agent = make_agent(variant)
    for index, rate in enumerate(rates):
        if index:
            agent.expand()
        assert agent.critic_lr == pytest.approx(rate, rel=1e-12)
        assert agent._state.critic_optimiser.lr.item() == pytest.approx(rate, rel=1e-6)
        assert agent._state.value_optimiser.lr.item() == pytest.approx(rate, rel=1e-6)
        assert agent._state.actor_optimiser.lr.item() == pytest.approx(3e-4, rel=1e-6)
    with pytest.raises(ValueError, match="maximal depth"):
        agent.expand()


def test_schedule_of_expansions():
    agent = make_agent(**GROWING)
    assert agent.updates_until_change() == 3 and not agent.expansion_due()
    with pytest.raises(ValueError, match="expansion is due after 3"):
        agent.update(make_batch(4))
    agent.update(make_batch(3))
    assert agent.expansion_due() and agent.updates_until_change() == 0
    agent.expand()
    assert not agent.expansion_due() and agent.updates_until_change() == 2
    agent.update(make_batch(2))
    agent.expand()
    assert agent.depth == 4 and agent.updates_until_change() is None
    agent.update(make_batch(2))
    agent.reset()
    assert agent.depth == 2 and agent.updates_until_change() == 3


def test_expansions_beyond_the_maximal_depth_never_come():
    agent = make_agent(expansion_updates=(1, 2, 3, 4), maximal_depth=3)
    agent.update(make_batch(1))
    agent.expand()
    assert agent.updates_until_change() is None
    agent.update(make_batch(9))
    assert not agent.expansion_due()


def test_reset_restarts_everything_learnable_but_not_the_noise():
    agent = make_agent(**GROWING)
    newborn = snapshot(agent)
    agent.update(make_batch(3))
    agent.expand()
    noise = agent.state_dict()["noise_generator"]
    agent.reset()
    after = snapshot(agent)
    assert torch.equal(agent.state_dict()["noise_generator"], noise)
    assert (agent.updates, agent.total_updates, agent.resets, agent.depth) == (0, 3, 1, 2)
    assert agent.critic_lr == 3e-4 and not agent.bc_active
    assert after.keys() == newborn.keys()
    for name in after:
        weight = name.endswith(".weight") and "optimiser" not in name
        assert torch.equal(after[name], newborn[name]) != weight, name
    twin = make_agent(**GROWING)
    twin.reset()
    assert same(snapshot(twin), after), "a reset depends on the seed and its index alone"
    twin.reset()
    assert not torch.equal(twin._state.actor["head.weight"], after["actor/head.weight"])


@pytest.mark.parametrize("variant", ["fog", "sac"])
def test_state_round_trip_then_identical_updates(variant):
    growing = GROWING if variant == "fog" else {}
    agent = make_agent(variant, **growing)
    agent.update(make_batch(2))
    agent.reset()
    agent.update(make_batch(3))
    if growing:
        agent.expand()
    tensors, counters = agent.state_dict(), agent.counters()
    other = make_agent(variant, **growing)
    other.load_state_dict(tensors, counters)
    assert other.counters() == counters and other.depth == agent.depth
    for one in (agent, other):
        one.update(make_batch(2, seed=4))
        one.reset()
        one.update(make_batch(1, seed=5))
    assert same(agent.state_dict(), other.state_dict())


def test_noise_of_another_kind_of_device_begins_anew():
    """CUDA's generator has a state of 16 bytes; an agent must still load on the CPU."""
    agent = make_agent("sac")
    agent.update(make_batch(3))
    foreign = agent.state_dict() | {"noise_generator": torch.zeros(16, dtype=torch.uint8)}
    one, two = make_agent("sac"), make_agent("sac")
    for other in (one, two):
        other.load_state_dict(foreign, agent.counters())
        other.update(make_batch(2, seed=4))
    assert same(one.state_dict(), two.state_dict())
    want = torch.Generator().manual_seed(integer_seed(0, "noise", 3))
    one.load_state_dict(foreign, agent.counters())
    assert torch.equal(one.state_dict()["noise_generator"], want.get_state())


def test_state_dict_is_a_copy():
    agent = make_agent()
    saved = agent.state_dict()
    before = {k: v.clone() for k, v in saved.items()}
    agent.update(make_batch(1))
    assert same(saved, before)
    agent.load_state_dict(saved, {"updates": 0, "total_updates": 0, "resets": 0})
    agent.update(make_batch(1))
    assert same(saved, before)


def test_state_of_another_size_is_refused():
    saved = make_agent(width=8)
    agent = make_agent()
    with pytest.raises(UserError, match="does not fit this config"):
        agent.load_state_dict(saved.state_dict(), saved.counters())
    part = agent.state_dict()
    del part["value/head.bias"]
    with pytest.raises(UserError, match=r"value/head\.bias has shape None"):
        agent.load_state_dict(part, agent.counters())


def test_divergence_is_seen():
    agent = make_agent()
    batch = make_batch(2)
    batch.reward[1, 3] = float("inf")
    assert agent.is_finite()
    stats = agent.update(batch)
    assert not stats.finite and not agent.is_finite()


def test_networks_view_and_offline_critics():
    agent = make_agent()
    agent.update(make_batch(3))
    batch = make_batch()
    obs, action = batch.obs[0], batch.action[0]
    view = agent.networks
    assert view.critics == ("online", "offline") and view.depth == 2
    assert view.q_values(obs, action).shape == (2, 16)
    assert not torch.equal(view.q_values(obs, action), view.q_values(obs, action, "offline"))
    assert view.features(obs, action, "offline").shape == (2, 16, 16)
    assert view.value(obs).shape == (16,)
    assert list(view.policy_layers(obs)[1]) == ["hidden0", "hidden1"]
    agent.expand()
    assert view.depth == 3 and "block2.inner" in view.q_layers(obs, action)[1]
    with pytest.raises(ValueError, match="no offline critics"):
        make_agent("sac").networks.critic("offline")


@pytest.mark.parametrize(
    ("obs_dim", "act_dim", "millions"),
    [(17, 6, 19.4), (51, 19, 19.6), (67, 21, 19.7), (223, 38, 20.6), (376, 17, 21.3)],
)
def test_parameter_counts_at_paper_scale(obs_dim, act_dim, millions):
    """8 Q, V and the actor at depth 4, width 512; V has no target. Counted by hand."""
    settings = resolve("HalfCheetah-v4", "fog").flat()
    counts = NetworkSpec.from_settings(settings, obs_dim, act_dim).parameters(depth=4)
    assert round(counts["total"] / 1e6, 1) == millions
    assert counts["trainable"] == counts["total"] - 2 * counts["critic"]
    assert round(counts["trainable"] / 1e6) in (11, 12)


@pytest.mark.parametrize("variant", ["fog", "sac"])
def test_parameter_counts_are_those_of_the_trees(variant):
    agent = make_agent(variant)
    counts = agent.parameter_counts()
    state = agent._state
    trees = (state.actor, state.critic, state.value, state.temperature)
    trainable = sum(t.numel() for tree in trees for t in tree.values())
    assert counts["trainable"] == trainable
    assert counts["total"] == trainable + sum(t.numel() for t in state.target.values())
    assert agent.parameter_counts(depth=4)["total"] > counts["total"] or variant == "sac"
