"""The plain update and the fast one are what the papers describe."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from functools import partial

import pytest
import torch

from fog.agent import Batch
from fog.algorithms.state import flatten
from fog.fast import kernels, one_twin_pays, serves
from fog.fast.update import update_
from fog.settings.variants import VARIANTS
from tests.fog.agent.agent_helpers import ACT, SIZE, doubled, make_agent, make_batch, one
from tests.fog.algorithms.reference import Reference

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

PLAIN = {"critic_layer_norm": False, "actor_layer_norm": False}
FIXED = {"maximal_depth": 0, "initial_depth": 0, "expansion_updates": ()}


def distinct_variants():
    """One variant for each update of SAC and OBAC; else they differ in sampler and schedule."""
    found = {}
    for name in VARIANTS:
        agent = make_agent(name)
        if agent.config.agent.backbone in ("sac", "obac") and not agent.spec.injects:
            found.setdefault((agent.spec, agent.hyper), name)
    return list(found.values())


CASES = {
    **{name: (name, {"bc_weight": 0.5}) for name in distinct_variants()},
    "elu": ("sac", {"activation": "elu"}),
    "actor without norm": ("sac", {"actor_layer_norm": False}),
    "mean of twins": ("sac", {"pessimism": 0.0}),
    "some pessimism": ("sac", {"pessimism": 0.3}),
    "clipped std": ("sac", {"log_std_map": "clip", "log_std_min": -0.2, "log_std_max": 0.1}),
    "narrow smooth std": ("sac", {"log_std_min": -0.2, "log_std_max": 0.1}),
    "entropy of one per action": ("sac", {"target_entropy": -1.0}),
    "plain, growing": ("expanded-sac", PLAIN),
    "fog on metaworld": ("fog", {"bc_weight": 0.5, "pessimism": 0.0}),
    "fog with a stem of two": ("fog", {"bc_weight": 0.5, "stem_layers": 2}),
    "fog with a smooth std": (
        "fog",
        {"bc_weight": 0.5, "log_std_map": "smooth", "log_std_min": -10.0},
    ),
    "plain fog": ("fog", {**PLAIN, **FIXED, "stem_layers": 2, "bc_weight": 0.5}),
}


def pair(case):
    """Our agent's state in double precision, its rule, and the reference started from it."""
    variant, settings = CASES[case]
    agent = make_agent(variant, **settings)
    return agent, doubled(agent._state), Reference(agent.config, ACT, agent._state)


def update_of(agent, form):
    """One of the three forms of an update, as a function of (state, batch, noise, flag)."""
    if form == "plain":
        return partial(agent.backend.family.update_, hyper=agent.hyper)
    return partial(update_, hyper=replace(agent.hyper, one_twin=form == "fast, one twin"))


def step(state, reference, update, index, bc_active=True):
    """One update of both; returns the gate."""
    g = torch.Generator().manual_seed(index)
    batch = Batch(*(part.double() for part in one(make_batch(seed=index))))
    noise = torch.randn(2, SIZE, ACT, generator=g).double()
    flag = torch.tensor(bc_active)
    metrics, td_error = update(state, batch, noise, flag)
    torch.testing.assert_close(td_error, reference.update(batch, noise, flag), rtol=1e-9, atol=1e-9)
    return metrics[-1].item()


def assert_same(state, reference):
    right, seen = reference.tensors(), set()
    for name, tensor in flatten(state):
        if name.endswith(("/step", "/lr")):
            continue
        torch.testing.assert_close(tensor, right[name], rtol=1e-9, atol=1e-9, msg=name)
        seen.add(name)
    assert seen == set(right)


def test_the_cases_are_different_agents():
    configs = [
        make_agent(variant, **settings).config.replace(variant="fog")
        for variant, settings in CASES.values()
    ]
    same = [
        pair
        for pair in itertools.combinations(CASES, 2)
        if len({repr(configs[list(CASES).index(case)]) for case in pair}) == 1
    ]
    assert not same


# Only a minimum picks one of the twins.
PICKING = [case for case, (_, settings) in CASES.items() if "pessimism" not in settings]
FORMS = [
    *((case, form) for case in CASES for form in ("plain", "fast")),
    *((case, "fast, one twin") for case in PICKING),
]


@pytest.mark.parametrize(("case", "form"), FORMS)
def test_updates_before_and_after_every_expansion_in_double_precision(case, form):
    """A wrong gradient cannot hide: parameters and Adam's moments are compared to 1e-9."""
    agent, state, reference = pair(case)
    update = update_of(agent, form)
    gates = []
    for depth in range(agent.spec.initial_depth, agent.spec.maximal_depth + 1):
        if depth > agent.spec.initial_depth:
            agent._set_state(state)
            agent.expand()
            state = doubled(agent._state)
            reference.expand(state)
        for index in range(6):
            gates.append(step(state, reference, update, 100 * depth + index, bc_active=index > 1))
        assert_same(state, reference)
    if case == "fog":
        # The cloning term was in and out of the loss, or its gradient was not tested.
        assert set(gates) == {0.0, 1.0}


@pytest.mark.parametrize("form", ["plain", "fast"])
def test_the_reference_is_not_our_update_in_disguise(form):
    """Another constant must show in the comparison above."""
    _, state, reference = pair("sac")
    other = update_of(make_agent("sac", pessimism=0.5), form)
    with pytest.raises(AssertionError):
        step(state, reference, other, 0)
        assert_same(state, reference)


@pytest.mark.parametrize("smaller", [0, 1])
def test_one_twin_may_be_picked_everywhere(smaller):
    """The border between the twins then lies at an end."""
    agent = make_agent("sac")
    agent._state.critic["head.bias"][smaller] -= 1e3
    state = doubled(agent._state)
    reference = Reference(agent.config, ACT, agent._state)
    step(state, reference, update_of(agent, "fast, one twin"), 0)
    assert_same(state, reference)


# Every way through the kernels: activations, norms, twins, stems, blocks, ensembles.
KERNEL_CASES = (
    "sac-utd1",
    "expanded-sac",
    "elu",
    "mean of twins",
    "plain, growing",
    "fog",
    "fog on metaworld",
    "fog with a stem of two",
)


@needs_compiler
@pytest.mark.parametrize("case", KERNEL_CASES)
def test_two_hundred_updates_with_our_kernels(case):
    """To 1e-5 beside the same update by torch's products, across expansions and a reset."""
    assert kernels.load()
    variant, settings = CASES[case]
    agents = [make_agent(variant, width=24, **settings) for _ in range(2)]
    picks = agents[0].hyper.pessimism == 1.0
    g = torch.Generator().manual_seed(0)
    grows = agents[0].spec.maximal_depth > agents[0].spec.initial_depth
    for index in range(200):
        for agent in agents:
            if index in (60, 190) and grows:
                agent.expand()
            if index == 130:
                agent.reset()
        batch, noise = one(make_batch(seed=index)), torch.randn(2, SIZE, ACT, generator=g)
        for agent, native in zip(agents, (True, False), strict=True):
            hyper = replace(agent.hyper, native=native, one_twin=native and picks)
            update_(agent._state, batch, noise, torch.tensor(index % 130 > 30), hyper)
    right = dict(flatten(agents[1]._state))
    for name, tensor in flatten(agents[0]._state):
        torch.testing.assert_close(tensor, right[name], rtol=1e-5, atol=1e-5, msg=name)


def test_wide_critics_pick_where_there_is_a_minimum():
    agents = {
        (width, pessimism): make_agent("sac", width=width, pessimism=pessimism)
        for width in (64, 256)
        for pessimism in (0.0, 1.0)
    }
    assert [key for key, agent in agents.items() if agent.hyper.one_twin] == [(256, 1.0)]
    assert [key for key, agent in agents.items() if one_twin_pays(agent.config)] == [(256, 1.0)]


@needs_compiler
def test_compiled_updates_take_our_kernels():
    eager, compiled = (make_agent("sac", compiled=flag) for flag in (False, True))
    assert (
        not eager.hyper.native and not eager.hyper.one_twin and not eager.backend.compiler_options
    )
    assert compiled.hyper.native and compiled.hyper.one_twin and compiled.backend.compiler_options
    mean = make_agent("sac", compiled=True, pessimism=0.0).hyper
    assert mean.native and not mean.one_twin


def test_the_fast_update_serves_the_cpu_in_single_precision():
    config, cpu = make_agent("sac").config, torch.device("cpu")
    assert serves(config, cpu)
    assert not serves(config, torch.device("cuda"))
    for changes in ({"precision": "bfloat16"}, {"backend": "plain"}, {"growth": "injection"}):
        assert not serves(config.replace(**changes), cpu)
    assert not serves(make_agent("bro").config, cpu)


@pytest.mark.parametrize("variant", ["sac", "fog"])
def test_the_plain_update_can_be_asked_for(variant):
    plain, fast = make_agent(variant, backend="plain"), make_agent(variant)
    assert plain.backend.update_ is plain.backend.family.update_
    assert fast.backend.update_ is update_
    plain.update(make_batch(20))
    fast.update(make_batch(20))
    right = dict(flatten(fast._state))
    for name, tensor in flatten(plain._state):
        torch.testing.assert_close(tensor, right[name], rtol=1e-4, atol=1e-5, msg=name)
