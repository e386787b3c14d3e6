"""Eager and compiled updates give the same numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from fog.agent import compile_cache
from fog.algorithms.state import clone_state, flatten
from fog.fast import kernels
from tests.fog.agent.agent_helpers import ACT, OBS, SIZE, make_agent, make_batch, one


def assert_close(a, b, tolerance):
    right = dict(flatten(b))
    for name, tensor in flatten(a):
        torch.testing.assert_close(tensor, right[name], rtol=tolerance, atol=tolerance, msg=name)


@pytest.mark.parametrize("form", ["plain", "fast", "fast, one twin"])
def test_traced_graph_equals_eager(form):
    """The whole update traces as one graph; run by torch's own kernels, so no C++ is compiled."""
    shallow = {"initial_depth": 1, "maximal_depth": 1, "expansion_updates": ()}
    agent = make_agent("fog", bc_weight=0.5, **shallow)
    hyper = replace(agent.hyper, one_twin=form == "fast, one twin")
    update_ = agent.backend.family.update_ if form == "plain" else agent.backend.update_
    traced = torch.compile(update_, fullgraph=True, dynamic=False, backend="aot_eager")
    eager_state, state = agent._state, clone_state(agent._state)
    g = torch.Generator().manual_seed(0)
    for index in range(20):
        batch, noise = one(make_batch(seed=index)), torch.randn(2, SIZE, ACT, generator=g)
        flag = torch.tensor(index > 5)
        want = update_(eager_state, batch, noise, flag, hyper)
        got = traced(state, batch, noise, flag, hyper)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    assert_close(eager_state, state, 1e-5)


@pytest.mark.parametrize("variant", ["bro", "simba", "fog-injection"])
def test_the_graph_of_an_opponent_equals_eager(variant):
    agent = make_agent(variant, bc_weight=0.5)
    if variant == "fog-injection":
        agent.expand()
    update_ = agent.backend.update_
    traced = torch.compile(update_, fullgraph=True, dynamic=False, backend="aot_eager")
    eager_state, state = agent._state, clone_state(agent._state)
    g = torch.Generator().manual_seed(0)
    for index in range(10):
        noises = agent.backend.family.NOISES
        batch, noise = one(make_batch(seed=index)), torch.randn(noises, SIZE, ACT, generator=g)
        flag = torch.tensor(index > 5)
        want = update_(eager_state, batch, noise, flag, agent.hyper)
        got = traced(state, batch, noise, flag, agent.hyper)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    assert_close(eager_state, state, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "picks"), [("expanded-sac", False), ("fog", True)])
def test_compiled_equals_eager_across_expansion_and_reset(variant, picks):
    """200 updates to 1e-5, through one expansion and one reset."""
    settings = {"expansion_updates": (60,), "bc_wait_updates": 30, "bc_weight": 0.1}
    agents = [make_agent(variant, compiled=flag, **settings) for flag in (False, True)]
    for agent in agents:
        agent.hyper = replace(agent.hyper, one_twin=picks)
        agent.update(make_batch(60))
        agent.expand()
        agent.update(make_batch(70, seed=1))
        agent.reset()
        agent.update(make_batch(60, seed=2))
        agent.expand()
        agent.update(make_batch(10, seed=3))
    assert_close(agents[0]._state, agents[1]._state, 1e-5)


@pytest.mark.slow
def test_where_our_kernels_cannot_be_built_torch_products_are_compiled(monkeypatch):
    monkeypatch.setattr(kernels, "load", lambda: False)
    agents = [make_agent("sac", compiled=flag) for flag in (False, True)]
    for agent in agents:
        agent.update(make_batch(30))
    assert not agents[1].hyper.native
    assert_close(agents[0]._state, agents[1]._state, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"backend": "plain"}, {"precision": "bfloat16"}])
def test_what_the_fast_form_does_not_know_is_compiled_plain(settings):
    agents = [make_agent("fog", compiled=flag, bc_wait_updates=5, **settings) for flag in (0, 1)]
    for agent in agents:
        assert agent.backend.update_ is agent.backend.family.update_
        agent.update(make_batch(10))
    if "precision" not in settings:
        assert_close(agents[0]._state, agents[1]._state, 1e-5)
        return
    # bfloat16 rounds elsewhere once the compiler has fused, each time by up to 2^-8. Ten
    # updates later the tensors differ by up to 1 % of their size (largest seen on this machine).
    states = [agent.state_dict() for agent in agents]
    for name, tensor in states[0].items():
        if tensor.is_floating_point():
            assert (tensor - states[1][name]).norm() <= 0.02 * tensor.norm() + 1e-12, name


@pytest.mark.slow
def test_a_batch_laid_out_otherwise_is_compiled_for_anew():
    """Tests hand in whole tensors, the replay columns of a block; the numbers are the same."""
    agents = [make_agent("sac", compiled=flag) for flag in (False, True)]
    for seed in range(2):
        batches = make_batch(3, seed=seed)
        block = torch.cat([batches.obs, batches.action, batches.next_obs], dim=-1)
        columns = batches._replace(
            obs=block[..., :OBS], action=block[..., OBS : OBS + ACT], next_obs=block[..., -OBS:]
        )
        agents[0].update(batches)
        agents[1].update(columns if seed else batches)
    assert_close(agents[0]._state, agents[1]._state, 1e-5)


@pytest.mark.slow
def test_the_next_process_finds_what_was_compiled(tmp_path):
    """A second run loads the update, a third one makes good what it finds broken: same bits."""
    results = []
    for attempt in range(3):
        if attempt == 2:
            [file] = (tmp_path / "fog").glob("update-*")
            file.write_bytes(b"broken")
        done = subprocess.run(
            [sys.executable, "-c", UPDATE_ONCE],
            env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        results.append(done.stdout.split())
    assert [traced for traced, _ in results] == ["1", "0", "1"]
    assert len({bits for _, bits in results}) == 1


UPDATE_ONCE = """
import hashlib
from torch._dynamo.utils import counters
from tests.fog.agent.agent_helpers import make_agent, make_batch
agent = make_agent("sac", compiled=True)
agent.update(make_batch(3))
bits = b"".join(tensor.numpy().tobytes() for tensor in agent.state_dict().values())
print(counters["stats"]["unique_graphs"], hashlib.sha256(bits).hexdigest())
"""


@pytest.mark.slow
def test_compiled_runs_repeat_bit_for_bit():
    states = []
    for _ in range(2):
        agent = make_agent("sac", compiled=True)
        agent.update(make_batch(20))
        states.append(agent.state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_a_broken_file_of_the_cache_is_named(tmp_path):
    path = tmp_path / "update-broken"
    assert compile_cache._load(path) is None
    path.write_bytes(b"broken")
    with pytest.warns(UserWarning, match=r"update-broken cannot be read, compiling again"):
        assert compile_cache._load(path) is None
