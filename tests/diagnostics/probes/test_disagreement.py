"""Disagreement of twins and the slope of Q against differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diagnostics.probes.disagreement import Disagreement
from tests.diagnostics.probes.stage import build


@pytest.mark.parametrize("critic", ["online", "offline"])
def test_disagreement_and_steepness_by_differences(tmp_path, critic):
    stage = build(tmp_path, Disagreement(size=8), added=70)
    stage.probes.window()
    table = stage.read("disagreement").query(f"critic == '{critic}'").set_index("window")
    # Transitions 20 to 69 are stored, in windows of 20.
    rng, h = stage.rng("disagreement"), 1e-6
    for window, start, end in ((1, 20, 40), (2, 40, 60), (3, 60, 70)):
        ids = start + np.sort(rng.choice(end - start, 8, replace=False))
        batch, networks = stage.replay.take(ids), stage.agent.networks
        q = networks.q_values(batch.obs, batch.action, critic)
        slopes = []
        for k in range(2):
            step = torch.zeros(2)
            step[k] = h
            sides = [
                networks.q_values(batch.obs, batch.action + sign * step, critic) for sign in (1, -1)
            ]
            slopes.append((sides[0] - sides[1]) / (2 * h))
        row = table.loc[window]
        assert row["count"] == 8 and row["age"] == pytest.approx(np.mean(69 - ids))
        assert row["disagreement"] == pytest.approx((q[0] - q[1]).abs().mean().item(), rel=1e-6)
        steep = torch.stack(slopes).norm(dim=0).mean().item()
        assert row["action_gradient"] == pytest.approx(steep, rel=1e-5)
        assert row["q_std"] == pytest.approx(q.mean(dim=0).std(correction=0).item(), rel=1e-6)
    assert list(table.index) == [1, 2, 3]
