"""Plasticity against Adam written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diagnostics.probes.plasticity import Plasticity
from fog.networks import critic_forward
from tests.diagnostics.probes.stage import SIZE, build


def test_plasticity_of_a_copy(tmp_path):
    stage = build(tmp_path, Plasticity(batch=SIZE, steps=20, lr=1e-2))
    before = stage.agent.state_dict()
    stage.probes.window()
    after = stage.agent.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(tensor.grad is None for tensor in stage.agent.networks.critic().values())
    table = stage.read("plasticity").set_index("critic")
    assert list(table.index) == ["online", "offline"]
    rng, batch = stage.rng("plasticity"), stage.everything()
    targets = torch.from_numpy(rng.standard_normal((2, SIZE), dtype=np.float32))
    q = stage.agent.networks.q_values(batch.obs, batch.action)
    z = (q - q.mean(dim=1, keepdim=True)) / q.std(dim=1, keepdim=True, correction=0)
    row = table.loc["online"]
    assert row["loss_start"] == pytest.approx((z - targets).square().mean().item(), rel=1e-6)
    assert row["score"] == pytest.approx(1 - row["loss_end"] / row["loss_start"], rel=1e-9)
    assert 0 < row["score"] <= 1 and row["loss_end"] / row["loss_start"] < row["area"] < 1


@pytest.mark.parametrize("critic", ["online", "offline"])
def test_plasticity_by_adam_written_out(tmp_path, critic):
    stage = build(tmp_path, Plasticity(batch=SIZE, steps=20, lr=1e-2))
    stage.probes.window()
    row = stage.read("plasticity").set_index("critic").loc[critic]
    rng, batch = stage.rng("plasticity"), stage.everything()
    targets = {
        name: torch.from_numpy(rng.standard_normal((2, SIZE), dtype=np.float32))
        for name in ("online", "offline")
    }
    inputs = torch.cat([batch.obs, batch.action], dim=-1)
    params = {k: v.clone() for k, v in stage.agent.networks.critic(critic).items()}
    q = critic_forward(params, inputs, stage.agent.hyper.activation)
    mean, spread = q.mean(dim=1, keepdim=True), q.std(dim=1, keepdim=True, correction=0)
    first = {name: torch.zeros_like(tensor) for name, tensor in params.items()}
    second = {name: torch.zeros_like(tensor) for name, tensor in params.items()}
    curve = []
    for step in range(21):
        leaves = {name: tensor.detach().requires_grad_() for name, tensor in params.items()}
        q = critic_forward(leaves, inputs, stage.agent.hyper.activation)
        loss = ((q - mean) / spread - targets[critic]).square().mean()
        curve.append(loss.item())
        loss.backward()
        for name, leaf in leaves.items():
            first[name] = 0.9 * first[name] + 0.1 * leaf.grad
            second[name] = 0.999 * second[name] + 0.001 * leaf.grad**2
            corrected = first[name] / (1 - 0.9 ** (step + 1))
            scale = (second[name] / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8
            params[name] = leaf.detach() - 1e-2 * corrected / scale
    assert row["loss_start"] == pytest.approx(curve[0], rel=1e-6)
    assert row["loss_end"] == pytest.approx(curve[20], rel=1e-6)
    assert row["score"] == pytest.approx(1 - curve[20] / curve[0], rel=1e-6)
    assert row["area"] == pytest.approx(np.mean(curve[1:]) / curve[0], rel=1e-6)


def test_a_network_that_cannot_learn_has_no_plasticity(tmp_path):
    stage = build(tmp_path, Plasticity(batch=SIZE, steps=20, lr=1e-3))
    stage.probes.window()
    healthy = stage.read("plasticity").set_index("critic").loc["online", "score"]
    with torch.no_grad():
        tree = stage.agent._state.critic
        for name in tree:
            if name.endswith("weight"):
                tree[name] *= 100.0
    stage.progress.env_step += 1
    stage.probes.window()
    frozen = stage.read("plasticity").query("critic == 'online'")["score"].iloc[-1]
    assert frozen < healthy / 2
