"""Norms of networks against brute force on a buffer of 50 transitions."""

from __future__ import annotations

import numpy as np
import pytest

from diagnostics.probes.norms import Norms
from tests.diagnostics.probes.reference import reference_loss
from tests.diagnostics.probes.stage import build, normals


@pytest.mark.parametrize("network", ["online", "offline", "value", "actor"])
def test_norms(tmp_path, network):
    stage = build(tmp_path, Norms(per_window=4), bc_wait_updates=0)
    row = stage.read("norms").query("env_step == 50").set_index("network").loc[network]
    rng, networks = stage.rng("norms"), stage.agent.networks
    for rows in (17, 20, 25, 30, 35, 40, 45, 50):
        noise = {name: normals(rng, rows) for name in stage.view.agent.networks}
        rng.choice(rows, 16, replace=False)
        rng.standard_normal((2, 16, 2), dtype=np.float32)
    trees = {"actor": networks.actor, "value": networks.value_net}
    tree = trees[network]() if network in trees else networks.critic(network)
    params = {k: v.clone().requires_grad_() for k, v in tree.items()}
    loss, features = reference_loss(stage, network, params, stage.everything(), noise[network])
    loss.mean().backward()
    squares = [p.detach().square().sum().item() for p in params.values()]
    slopes = [p.grad.square().sum().item() for p in params.values()]
    assert row["parameter_norm"] == pytest.approx(np.sqrt(sum(squares)), rel=1e-6)
    assert row["gradient_norm"] == pytest.approx(np.sqrt(sum(slopes)), rel=1e-6)
    assert row["feature_norm"] == pytest.approx(features.norm(dim=-1).mean().item(), rel=1e-6)
    names = {"online": "critic", "offline": "offline_critic"}
    assert row["parameters"] == stage.agent.parameter_counts()[names.get(network, network)]
