"""Churn between two measurements; test_one_update.py has the churn of a single update."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diagnostics.probes.churn import Churn
from fog.events import Change
from tests.diagnostics.probes.stage import build, play


def test_churn_on_a_batch_that_stays_for_a_window(tmp_path):
    probe = Churn(batch=8, per_window=2)
    stage = build(tmp_path, probe, added=40)
    obs = torch.from_numpy(probe._arrays["obs"])
    action = torch.from_numpy(probe._arrays["action"])

    def outputs():
        networks = stage.agent.networks
        policy = torch.tanh(networks.policy(obs)[0]).double().numpy()
        return policy, networks.q_values(obs, action).mean(dim=0).double().numpy()

    policy, q = outputs()
    for phase in ("before", "after"):
        stage.probes.change(Change("expansion", phase))
    play(stage, 10)
    new_policy, new_q = outputs()
    table = stage.read("churn")
    assert list(table["env_step"]) == [20, 30, 40, 50]
    assert list(table["batch"]) == [0, 1, 1, 2]
    assert list(table["changes"]) == [0, 0, 0, 1]
    row = table.iloc[-1]
    assert row["updates"] == 10
    moved = np.sqrt(((new_policy - policy) ** 2).sum(axis=1)).mean()
    assert row["policy_churn"] == pytest.approx(moved, rel=1e-6)
    assert row["q_churn"] == pytest.approx(np.abs(new_q - q).mean(), rel=1e-6)
    assert row["q_churn_scaled"] == pytest.approx(np.abs(new_q - q).mean() / q.std(), rel=1e-6)
