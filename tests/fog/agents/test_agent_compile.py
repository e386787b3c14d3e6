"""Eager and compiled updates give the same numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fog.agents.state import clone_state, flatten
from fog.agents.update import update_
from tests.fog.agents.agent_helpers import ACT, SIZE, make_agent, make_batch, one


def assert_close(a, b, tolerance):
    right = dict(flatten(b))
    for name, tensor in flatten(a):
        torch.testing.assert_close(tensor, right[name], rtol=tolerance, atol=tolerance, msg=name)


@pytest.mark.parametrize("picks", [False, True])
def test_traced_graph_equals_eager(picks):
    """The whole update traces as one graph; run by torch's own kernels, so no C++ is compiled."""
    shallow = {"initial_depth": 1, "maximal_depth": 1, "expansion_updates": ()}
    agent = make_agent("fog", bc_weight=0.5, **shallow)
    rule = replace(agent.rule, picks=picks)
    traced = torch.compile(update_, fullgraph=True, dynamic=False, backend="aot_eager")
    eager_state, state = agent._state, clone_state(agent._state)
    g = torch.Generator().manual_seed(0)
    for index in range(20):
        batch, noise = one(make_batch(seed=index)), torch.randn(2, SIZE, ACT, generator=g)
        flag = torch.tensor(index > 5)
        want = update_(eager_state, batch, noise, flag, rule)
        got = traced(state, batch, noise, flag, rule)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    assert_close(eager_state, state, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "picks"), [("expanded-sac", False), ("fog", True)])
def test_compiled_equals_eager_across_expansion_and_reset(variant, picks):
    """200 updates to 1e-5, through one expansion and one reset."""
    settings = {"expansion_updates": (60,), "bc_wait_updates": 30, "bc_weight": 0.1}
    agents = [make_agent(variant, compiled=flag, **settings) for flag in (False, True)]
    for agent in agents:
        agent.rule = replace(agent.rule, picks=picks)
        agent.update(make_batch(60))
        agent.expand()
        agent.update(make_batch(70, seed=1))
        agent.reset()
        agent.update(make_batch(60, seed=2))
        agent.expand()
        agent.update(make_batch(10, seed=3))
    assert_close(agents[0]._state, agents[1]._state, 1e-5)


@pytest.mark.slow
def test_compiled_runs_repeat_bit_for_bit():
    states = []
    for _ in range(2):
        agent = make_agent("sac", compiled=True)
        agent.update(make_batch(20))
        states.append(agent.state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
