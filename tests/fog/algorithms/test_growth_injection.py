"""Plasticity injection: the function is preserved, the old head and one copy never move."""

from __future__ import annotations

import pytest
import torch

from fog.algorithms.state import clone_state, flatten
from fog.errors import ConfigError
from fog.records.sizes import is_frozen
from tests.fog.agent.agent_helpers import make_agent, make_batch, one

GROWN = {
    "fog-injection": {"expansion_updates": (4, 8)},
    "fog-bro": {"growth": "injection", "expansion_updates": (4, 8)},
}


@pytest.mark.parametrize("variant", GROWN)
def test_an_injection_preserves_what_critics_say(variant):
    agent = make_agent(variant, **GROWN[variant])
    batch = one(make_batch(seed=7))
    agent.update(make_batch(4))
    for updates in (4, 3):
        before = clone_state(agent._state)
        critics = [*agent.networks.critics]
        names = [*critics, *(f"{name}_target" for name in critics)]
        said = {name: agent.networks.q_values(batch.obs, batch.action, name) for name in names}
        assert agent.expansion_due()
        agent.expand()
        for name, values in said.items():
            now = agent.networks.q_values(batch.obs, batch.action, name)
            torch.testing.assert_close(now, values, rtol=1e-5, atol=1e-5)
        grown = dict(flatten(agent._state))
        assert not torch.equal(
            grown["critic/head.weight"], dict(flatten(before))["critic/head.weight"]
        )
        at_injection = clone_state(agent._state)
        agent.update(make_batch(updates, seed=1))
        now, then = agent._state.critic, at_injection.critic
        for name in now:
            assert torch.equal(now[name], then[name]) == is_frozen(name), name
        assert not any(map(is_frozen, agent._state.critic_optimiser.mean))
    assert agent.depth == 4 and agent.critic_lr == agent.config.agent.critic_lr


def test_the_count_of_trained_parameters_leaves_out_what_is_frozen():
    agent = make_agent("fog-injection", **GROWN["fog-injection"])
    born, grown = agent.parameter_counts(2), agent.parameter_counts(4)
    assert born["trainable"] == grown["trainable"] < grown["total"]
    while agent.depth < 4:
        agent.expand()
    frozen = [t.numel() for n, t in flatten(agent._state) if "/frozen" in n]
    assert sum(frozen) == grown["total"] - born["total"]


def test_a_saved_injection_is_restored():
    agent, other = (make_agent("fog-injection", **GROWN["fog-injection"]) for _ in range(2))
    agent.expand()
    other.load_state_dict(agent.state_dict(), agent.counters())
    assert other.depth == agent.depth == 3
    for (name, tensor), (_, same) in zip(flatten(agent._state), flatten(other._state), strict=True):
        assert torch.equal(tensor, same), name


def test_simba_has_no_injections():
    with pytest.raises(ConfigError, match="simba grows by blocks"):
        make_agent("simba", growth="injection")
