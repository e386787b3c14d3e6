"""The update against an independent one, written with autograd and torch.optim."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fog.agent import transition_losses
from fog.algorithms.state import clone_state, flatten
from fog.fast import update
from fog.fast.update import metric_names, update_
from fog.networks import LogStd, actor_forward, critic_forward
from tests.fog.agents.agent_helpers import ACT, OBS, SIZE, make_agent, make_batch, one, same

BOUNDS = (-20.0, 2.0)


def critic(params, x, twins):
    """One pair of twins evaluated on its own."""
    return critic_forward({k: v[twins] for k, v in params.items()}, x, "elu")


def policy(params, obs, noise):
    """Tanh Gaussian through torch.distributions rather than through our formula."""
    mean, log_std = actor_forward(params, obs, "elu", LogStd("clip", *BOUNDS))
    before = mean + log_std.exp() * noise
    normal = torch.distributions.Normal(mean, log_std.exp())
    jacobian = torch.distributions.TanhTransform().log_abs_det_jacobian(before, before.tanh())
    return before.tanh(), (normal.log_prob(before) - jacobian).sum(-1), mean, log_std


class Reference:
    """OBAC as its paper and code describe it, one network at a time, with torch.optim."""

    def __init__(self, state, config, pessimism, bc_active):
        def leaves(tree, rows=slice(None)):
            return {k: v[rows].clone().double().requires_grad_() for k, v in tree.items()}

        def plain(tree, rows):
            return {k: v[rows].clone().double() for k, v in tree.items()}

        on, off = slice(0, 2), slice(2, 4)
        self.actor = {k: v.clone().double().requires_grad_() for k, v in state.actor.items()}
        self.q, self.q_target = leaves(state.critic, on), plain(state.target, on)
        self.b, self.b_target = leaves(state.critic, off), plain(state.target, off)
        self.v = leaves(state.value)
        self.log_alpha = state.temperature["log"].clone().double().requires_grad_()
        self.config, self.pessimism, self.bc_active = config, pessimism, bc_active
        decay = {"lr": config.critic_lr, "weight_decay": config.weight_decay}
        self.opts = {
            "q": torch.optim.AdamW(self.q.values(), **decay),
            "b": torch.optim.AdamW(self.b.values(), **decay),
            "v": torch.optim.AdamW(self.v.values(), **decay),
            "actor": torch.optim.Adam(self.actor.values(), lr=config.actor_lr),
            "alpha": torch.optim.Adam([self.log_alpha], lr=config.temperature_lr),
        }

    def combine(self, q):
        return q.min(0).values if self.pessimism else q.mean(0)

    def descend(self, name, loss):
        self.opts[name].zero_grad()
        loss.backward()
        self.opts[name].step()

    def step(self, batch, noise):
        batch = type(batch)(*(t.double() for t in batch))
        noise = noise.double()
        every = slice(None)
        c = self.config
        alpha = self.log_alpha.detach().exp()
        x = torch.cat([batch.obs, batch.action], -1)
        with torch.no_grad():
            a, logp, _, _ = policy(self.actor, batch.next_obs, noise[0])
            q = critic(self.q_target, torch.cat([batch.next_obs, a], -1), every)
            y = batch.reward + c.discount * batch.bootstrap * (self.combine(q) - alpha * logp)
            v = critic(self.v, batch.next_obs, every)[0]
            y_b = batch.reward + c.discount * batch.bootstrap * v
            q_b = critic(self.b_target, x, every).min(0).values
        q_now = critic(self.q, x, every)
        self.descend("q", (batch.weight * ((q_now - y) ** 2).sum(0)).mean())
        b_now = critic(self.b, x, every)
        offline = b_now.detach().min(0).values.mean()
        self.descend("b", (batch.weight * ((b_now - y_b) ** 2).sum(0)).mean())
        u = q_b - critic(self.v, batch.obs, every)[0]
        self.descend("v", (torch.where(u < 0, 1 - c.expectile, c.expectile) * u**2).mean())
        a, logp, mean, log_std = policy(self.actor, batch.obs, noise[1])
        q = self.combine(critic(self.q, torch.cat([batch.obs, a], -1), every))
        loss = (alpha * logp - q).mean()
        gate = bool(q.mean() < offline) and self.bc_active
        if gate:
            density = torch.distributions.Normal(mean, log_std.exp()).log_prob(batch.action)
            loss = loss - c.bc_weight * density.clamp(*BOUNDS).mean()
        self.descend("actor", loss)
        goal = c.target_entropy * ACT
        self.descend("alpha", -(self.log_alpha * (logp.detach() + goal)).mean())
        for target, online in ((self.q_target, self.q), (self.b_target, self.b)):
            for k in target:
                target[k] = (1 - c.polyak) * target[k] + c.polyak * online[k].detach()
        return gate, (q_now.detach() - y).abs().max(0).values

    def trees(self):
        def stack(a, b):
            return {k: torch.cat([a[k], b[k]]) for k in a}

        return {
            "actor": self.actor,
            "critic": stack(self.q, self.b),
            "target": stack(self.q_target, self.b_target),
            "value": self.v,
            "temperature": {"log": self.log_alpha},
        }


def perturbed(agent, seed=3):
    """The agent's state away from its initial symmetric point: offline and target differ."""
    g = torch.Generator().manual_seed(seed)
    state = clone_state(agent._state)
    for tree in (state.critic, state.target, state.value, state.actor):
        for tensor in tree.values():
            tensor.add_(0.05 * torch.randn(tensor.shape, generator=g))
    return state


@pytest.mark.parametrize("pessimism", [0.0, 1.0])
@pytest.mark.parametrize("bc_active", [False, True])
@pytest.mark.parametrize("shift", [-50.0, 50.0])
def test_obac_equals_a_plain_implementation(pessimism, bc_active, shift):
    # Large settings make a wrong gate, a decayed actor or an old critic visible in ten updates.
    large = {"bc_weight": 0.5, "weight_decay": 1.0, "critic_lr": 3e-3}
    agent = make_agent(pessimism=pessimism, **large)
    state = perturbed(agent)
    state.critic["head.bias"][2:] += shift
    reference = Reference(state, agent.config.agent, pessimism, bc_active)
    flag, gates = torch.tensor(bc_active), []
    g = torch.Generator().manual_seed(9)
    for index in range(10):
        batch = one(make_batch(seed=index))
        noise = torch.randn(2, SIZE, ACT, generator=g)
        gate, td = reference.step(batch, noise)
        metrics, td_error = update_(state, batch, noise, flag, agent.rule)
        gates.append(gate)
        named = dict(zip(metric_names(agent.rule), metrics.tolist(), strict=True))
        assert named["bc_gate"] == gate
        torch.testing.assert_close(td_error.double(), td, rtol=1e-4, atol=1e-4)
    assert all(gates) == any(gates) == (bc_active and shift > 0)
    for name, tree in reference.trees().items():
        for key, want in tree.items():
            got = getattr(state, name)[key].double()
            torch.testing.assert_close(
                got, want.detach(), rtol=1e-4, atol=5e-5, msg=f"{name} {key}"
            )


def test_cloning_changes_the_actor_only_and_only_when_active():
    agent = make_agent(bc_weight=0.5)
    state = perturbed(agent)
    state.critic["head.bias"][2:] += 50.0
    batch, noise = one(make_batch()), torch.zeros(2, SIZE, ACT)
    off, _, _ = update(state, batch, noise, torch.tensor(False), agent.rule)
    on, _, _ = update(state, batch, noise, torch.tensor(True), agent.rule)
    assert same(off.critic, on.critic) and same(off.value, on.value)
    assert not same(off.actor, on.actor)


def test_update_is_pure():
    agent = make_agent()
    before = {k: v.clone() for k, v in flatten(agent._state)}
    batch, noise = one(make_batch()), torch.zeros(2, SIZE, ACT)
    new, _, _ = update(agent._state, batch, noise, torch.tensor(True), agent.rule)
    assert same(before, dict(flatten(agent._state)))
    again, _, _ = update(agent._state, batch, noise, torch.tensor(True), agent.rule)
    assert same(dict(flatten(new)), dict(flatten(again)))
    assert not same(before, dict(flatten(new)))


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
    flag = torch.tensor(False)
    new, metrics, td = update(agent._state, zero, noise, flag, agent.rule)
    named = dict(zip(metric_names(agent.rule), metrics.tolist(), strict=True))
    assert named["critic_loss"] == named["offline_critic_loss"] == 0
    assert named["value_loss"] > 0 and (td > 0).any()
    assert not new.critic_optimiser.mean["stem.weight"].any()
    full, _, full_td = update(agent._state, batch, noise, flag, agent.rule)
    assert same(new.value, full.value), "V is unweighted"
    assert torch.equal(td, full_td), "priorities are unweighted"


@pytest.mark.parametrize("variant", ["fog", "sac", "fog-sac"])
def test_transition_losses_are_the_training_losses(variant):
    agent = make_agent(variant)
    agent.update(make_batch(3))
    batch = one(make_batch(seed=5))._replace(weight=torch.ones(SIZE))
    noise = torch.randn(2, SIZE, ACT, generator=torch.Generator().manual_seed(0))
    probe = transition_losses(agent._state, batch, noise[0], agent.rule)
    _, metrics, td = update(agent._state, batch, noise, torch.tensor(False), agent.rule)
    named = dict(zip(metric_names(agent.rule), metrics.tolist(), strict=True))
    assert probe.critic.shape == (SIZE,)
    assert probe.critic.mean().item() == pytest.approx(named["critic_loss"], rel=1e-5)
    assert probe.q.mean().item() == pytest.approx(named["q"], rel=1e-5)
    if agent.rule.offline:
        assert probe.offline_critic.mean().item() == pytest.approx(
            named["offline_critic_loss"], rel=1e-5
        )
        assert probe.value.mean().item() == pytest.approx(named["value_loss"], rel=1e-5)
    else:
        assert probe.offline_critic is None and probe.value is None
    q = agent.networks.q_values(batch.obs, batch.action)
    want = np.abs(q.double().numpy() - probe.target.double().numpy()).max(axis=0)
    np.testing.assert_allclose(td.numpy(), want, rtol=1e-4, atol=1e-5)


def test_target_entropy_is_per_dimension_in_the_config():
    assert make_agent("fog").rule.target_entropy == -ACT / 2
    assert make_agent("sac", target_entropy=-1.0).rule.target_entropy == -ACT
    assert math.exp(make_agent()._state.temperature["log"]) == 1.0


def test_mixed_precision_trains_close_to_full_precision():
    full, mixed = make_agent(), make_agent(precision="bfloat16")
    batches = make_batch(5)
    a, b = full.update(batches), mixed.update(batches)
    assert b.finite
    assert b.metrics["critic_loss"] == pytest.approx(a.metrics["critic_loss"], rel=0.1)
    assert all(t.dtype == torch.float32 for _, t in flatten(mixed._state))
    assert a.metrics != b.metrics, "bfloat16 must really be used"
    assert full._state.critic["stem.weight"].shape[1] == OBS + ACT
