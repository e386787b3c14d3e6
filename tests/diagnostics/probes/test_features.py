"""Feature dumps against brute force on a buffer of 50 transitions."""

from __future__ import annotations

import numpy as np
import torch

from diagnostics.probes.features import Features
from fog.events import Change
from tests.diagnostics.probes.stage import ACT, SIZE, build, play, promote

CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def test_features_of_a_sample(tmp_path):
    stage = build(tmp_path, Features(size=10, at=(0.5,)))
    table = stage.read("features")
    assert len(table) == 10 and set(table["env_step"]) == {50}
    rng = stage.rng("features")
    ids = np.sort(rng.choice(SIZE, 10, replace=False))
    assert np.array_equal(table["transition"], ids)
    assert np.array_equal(table["age"], 49 - ids)
    batch, networks = stage.replay.take(ids), stage.agent.networks
    noise = torch.from_numpy(rng.standard_normal((10, ACT), dtype=np.float32))
    q = networks.q_values(batch.obs, batch.action)[0]
    target = networks.transition_losses(batch, noise)["online"].target
    np.testing.assert_allclose(table["q"], q, **CLOSE)
    np.testing.assert_allclose(table["td_error"], target - q, **CLOSE)
    np.testing.assert_allclose(table["reward"], batch.reward, **CLOSE)
    features = networks.features(batch.obs, batch.action)[0]
    np.testing.assert_allclose(np.stack(table["features"]), features, **CLOSE)
    params = networks.critic()
    values = np.stack(table["features"]) @ params["head.weight"][0].numpy()
    np.testing.assert_allclose(values[:, 0] + params["head.bias"][0, 0, 0].item(), q, **CLOSE)


def test_features_are_taken_once_per_chosen_share(tmp_path):
    stage = build(tmp_path, Features(size=5, at=(0.3, 0.2, 0.45)))
    assert sorted(stage.read("features")["env_step"].unique()) == [20, 30, 45]
    play(stage, 5)
    stage.probes.end()
    assert sorted(stage.read("features")["env_step"].unique()) == [20, 30, 45]


def test_features_are_not_missed_on_steps_without_an_update(tmp_path):
    """As with a replay ratio below 1: before a reset, and at the end of the run."""
    stage = build(tmp_path, Features(size=5, at=(0.8, 1.0)))
    stage.progress.env_step = 80
    q = stage.agent.networks.q_values(*stage.everything()[:2])[0]
    stage.probes.change(Change("reset", "before"))
    stage.agent.reset()
    promote(stage.agent)
    stage.probes.change(Change("reset", "after"))
    stage.progress.env_step = 100
    stage.probes.end()
    table = stage.read("features")
    assert list(table.groupby("env_step").size().items()) == [(80, 5), (100, 5)]
    before = table[table["env_step"] == 80]
    np.testing.assert_allclose(before["q"], q[before["transition"].to_numpy().copy()], **CLOSE)
