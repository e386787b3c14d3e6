"""The update with written-out gradients is the update by autograd."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace

import pytest
import torch

from fog import kernels
from fog.agents import Batch
from fog.agents.state import clone_state, flatten
from fog.agents.update import update_
from tests.fog.agents.agent_helpers import ACT, SIZE, doubled, make_agent, make_batch, one
from tests.fog.agents.reference import reference_update_

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

PLAIN = {"critic": "plain", "initial_depth": 0, "maximal_depth": 0, "expansion_updates": ()}
CASES = {
    "sac": ("sac", {}),
    "elu": ("sac", {"activation": "elu"}),
    "actor without norm": ("sac", {"actor_layer_norm": False}),
    "mean of twins": ("sac", {"pessimism": 0.0}),
    "some pessimism": ("sac", {"pessimism": 0.3}),
    "clipped std": ("sac", {"log_std_min": -0.2, "log_std_max": 0.1}),
    "plain": ("sac", PLAIN),
    "fog": ("fog", {"bc_weight": 0.5}),
    "fog on metaworld": ("fog", {"bc_weight": 0.5, "pessimism": 0.0}),
    "plain fog": ("fog", {**PLAIN, "bc_weight": 0.5}),
}


def test_the_cases_are_different_agents():
    configs = [make_agent(variant, **settings).config for variant, settings in CASES.values()]
    assert all(one != other for one, other in itertools.combinations(configs, 2))


# Only a minimum picks one of the twins.
PICKING = [case for case, (_, settings) in CASES.items() if "pessimism" not in settings]


@pytest.mark.parametrize(
    ("case", "picks"), [*((case, False) for case in CASES), *((case, True) for case in PICKING)]
)
def test_twenty_updates_in_double_precision(case, picks):
    """A wrong gradient cannot hide: Adam's moments are compared to 1e-9."""
    variant, settings = CASES[case]
    agent = make_agent(variant, **settings)
    rule = replace(agent.rule, picks=picks)
    fast, plain = doubled(agent._state), doubled(agent._state)
    g = torch.Generator().manual_seed(0)
    gates = []
    for index in range(20):
        batch = Batch(*(part.double() for part in one(make_batch(seed=index))))
        noise = torch.randn(2, SIZE, ACT, generator=g).double()
        flag = torch.tensor(index > 5)
        got = update_(fast, batch, noise, flag, rule)
        want = reference_update_(plain, batch, noise, flag, rule)
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)
        gates.append(got[0][-1].item())
    right = dict(flatten(plain))
    for name, tensor in flatten(fast):
        torch.testing.assert_close(tensor, right[name], rtol=1e-7, atol=1e-9, msg=name)
    if case == "fog":
        # The cloning term was in and out of the loss, or its gradient was not tested.
        assert set(gates) == {0.0, 1.0}


@pytest.mark.parametrize("native", [False, pytest.param(True, marks=needs_compiler)])
@pytest.mark.parametrize("variant", ["expanded-sac", "fog"])
def test_two_hundred_updates_across_expansion_and_reset(variant, native):
    """In the precision of training, to 1e-5, with torch's products and with ours."""
    assert not native or kernels.load()
    agents = [make_agent(variant, bc_wait_updates=30, bc_weight=0.1) for _ in range(2)]
    rule = replace(agents[0].rule, picks=True, native=native)
    g = torch.Generator().manual_seed(0)
    for index in range(200):
        if index in (60, 190):
            for agent in agents:
                agent.expand()
        if index == 130:
            for agent in agents:
                agent.reset()
        batch, noise = one(make_batch(seed=index)), torch.randn(2, SIZE, ACT, generator=g)
        flag = torch.tensor(index % 130 >= 30)
        for agent, function in zip(agents, (update_, reference_update_), strict=True):
            function(agent._state, batch, noise, flag, rule)
    right = dict(flatten(agents[1]._state))
    for name, tensor in flatten(agents[0]._state):
        torch.testing.assert_close(tensor, right[name], rtol=1e-5, atol=1e-5, msg=name)


@needs_compiler
@pytest.mark.parametrize("case", CASES)
def test_two_hundred_updates_with_our_kernels(case):
    """Every kind of agent, to 1e-5 beside the same update by torch's products."""
    assert kernels.load()
    variant, settings = CASES[case]
    agent = make_agent(variant, width=24, **settings)
    picks = agent.rule.pessimism == 1.0
    states, g = (agent._state, clone_state(agent._state)), torch.Generator().manual_seed(0)
    for index in range(200):
        batch, noise = one(make_batch(seed=index)), torch.randn(2, SIZE, ACT, generator=g)
        for state, native in zip(states, (True, False), strict=True):
            rule = replace(agent.rule, native=native, picks=native and picks)
            update_(state, batch, noise, torch.tensor(index > 50), rule)
    right = dict(flatten(states[1]))
    for name, tensor in flatten(states[0]):
        torch.testing.assert_close(tensor, right[name], rtol=1e-5, atol=1e-5, msg=name)


def test_the_reference_is_not_the_fast_update_in_disguise():
    """A different rule must show in the comparison above."""
    agent = make_agent("sac")
    state = clone_state(agent._state)
    batch, noise = one(make_batch()), torch.randn(2, SIZE, ACT)
    other = make_agent("sac", pessimism=0.5).rule
    update_(agent._state, batch, noise, torch.tensor(False), agent.rule)
    reference_update_(state, batch, noise, torch.tensor(False), other)
    right = dict(flatten(state))
    assert any(
        not torch.allclose(tensor, right[name], atol=1e-5) for name, tensor in flatten(agent._state)
    )


@pytest.mark.parametrize("smaller", [0, 1])
def test_one_twin_may_be_picked_everywhere(smaller):
    """The border between the twins then lies at an end."""
    agent = make_agent("sac")
    agent._state.critic["head.bias"][smaller] -= 1e3
    state = clone_state(agent._state)
    batch, noise = one(make_batch()), torch.randn(2, SIZE, ACT)
    rule = replace(agent.rule, picks=True)
    update_(agent._state, batch, noise, torch.tensor(False), rule)
    reference_update_(state, batch, noise, torch.tensor(False), rule)
    for name, tensor in state.actor.items():
        torch.testing.assert_close(agent._state.actor[name], tensor, rtol=1e-5, atol=1e-6, msg=name)


def test_wide_critics_pick_where_there_is_a_minimum():
    picks = {
        (width, pessimism): make_agent("sac", width=width, pessimism=pessimism).rule.picks
        for width in (64, 256)
        for pessimism in (0.0, 1.0)
    }
    assert [key for key, pick in picks.items() if pick] == [(256, 1.0)]
    assert not make_agent("sac", width=256, precision="bfloat16").rule.picks


@needs_compiler
def test_compiled_updates_take_our_kernels_where_these_exist():
    rule = make_agent("sac").rule
    assert not rule.native and not rule.picks
    compiled = rule.compiled_for(torch.device("cpu"))
    assert compiled.native and compiled.picks
    assert not rule.compiled_for(torch.device("cuda")).native
    halves = make_agent("sac", precision="bfloat16").rule.compiled_for(torch.device("cpu"))
    assert not halves.native and not halves.picks
    mean = make_agent("sac", pessimism=0.0).rule.compiled_for(torch.device("cpu"))
    assert mean.native and not mean.picks
