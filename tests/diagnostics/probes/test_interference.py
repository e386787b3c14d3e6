"""The interference probe against gradients taken one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diagnostics.probes import interference
from diagnostics.probes.interference import Interference, cosine, effective_rank
from fog.networks import critic_forward
from tests.diagnostics.probes.stage import SIZE, build, normals


def single_gradients(stage, ids, noise):
    """Flat gradients of the online critic's loss, one transition at a time, by plain autograd."""
    networks, rule = stage.agent.networks, stage.agent.hyper
    found = []
    for k, i in enumerate(ids):
        one = stage.replay.take(np.array([i]))
        target = networks.transition_losses(one, noise[k : k + 1])["online"].target
        leaves = {n: t.detach().clone().requires_grad_() for n, t in networks.critic().items()}
        q = critic_forward(leaves, torch.cat([one.obs, one.action], dim=-1), rule.activation)
        ((q[0] - target) ** 2 + (q[1] - target) ** 2).sum().backward()
        found.append(torch.cat([leaf.grad.flatten() for leaf in leaves.values()]).numpy())
    return np.stack(found)


def cosines_of(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


def rank_by_singular_values(vectors):
    """Of the unit vectors themselves: their squared singular values are the eigenvalues."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    share = np.linalg.svd(unit, compute_uv=False) ** 2 / len(unit)
    share = share[share > 1e-300]
    return np.exp(-np.sum(share * np.log(share)))


# The second limit holds two gradients at a time, the third fewer than one.
@pytest.mark.parametrize("held_bytes", [64_000_000, 2 * 8 * 850, 1])
@pytest.mark.parametrize("variant", ["fog", "sac"])
def test_gram_matrices_by_single_gradients(tmp_path, monkeypatch, held_bytes, variant):
    monkeypatch.setattr(interference, "_HELD_BYTES", held_bytes)
    stage = build(tmp_path, Interference(batch=12, samples=9), variant=variant)
    before = stage.agent.state_dict()
    stage.probes.window()
    after = stage.agent.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    rng = stage.rng("interference")
    windows = [np.arange(0, 20), np.arange(20, 40), np.arange(40, 50)]
    ids = [np.sort(w[0] + rng.choice(len(w), 12, replace=False)) for w in windows[:2]]
    ids.append(windows[2])
    joined = np.concatenate(ids)
    each = single_gradients(stage, joined, normals(rng, len(joined)))
    parts = np.split(each, [12, 24])
    means = np.stack([part.mean(axis=0) for part in parts])
    table = stage.read("interference")
    assert list(table["window"]) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert list(table["other"]) == [0, 1, 2] * 3
    np.testing.assert_allclose(table["dot"], (means @ means.T).ravel(), rtol=1e-6)
    np.testing.assert_allclose(table["cosine"], cosines_of(means).ravel(), rtol=1e-6)
    ages = [SIZE - 1 - part.mean() for part in ids]
    np.testing.assert_allclose(table["other_age"], np.tile(ages, 3))
    np.testing.assert_allclose(table["age"], np.repeat(ages, 3))

    row = stage.read("interference_rank").iloc[0]
    edges = np.linspace(0, SIZE, 10).astype(int)
    chosen = edges[:-1] + (rng.random(9) * np.diff(edges)).astype(int)
    assert np.array_equal(row["transitions"], chosen)
    vectors = single_gradients(stage, chosen, normals(rng, 9))
    np.testing.assert_allclose(row["cosines"], cosines_of(vectors).ravel(), rtol=1e-6, atol=1e-6)
    assert (row["windows"], row["samples"]) == (3, 9)
    assert row["sample_rank"] == pytest.approx(rank_by_singular_values(vectors), rel=1e-6)
    assert row["window_rank"] == pytest.approx(rank_by_singular_values(means), rel=1e-6)


def test_effective_rank_of_known_gram_matrices():
    assert effective_rank(np.eye(7)) == pytest.approx(7.0)
    assert effective_rank(np.ones((5, 5))) == pytest.approx(1.0)
    two = np.kron(np.eye(2), np.ones((3, 3)))
    assert effective_rank(two) == pytest.approx(2.0)
    # Opposite directions span one line: they interfere, and have rank 1.
    signs = np.array([1.0, -1.0, 1.0])
    assert effective_rank(np.outer(signs, signs)) == pytest.approx(1.0)


def test_gradients_that_are_zero_or_not_finite():
    products = np.diag([4.0, 0.0, 9.0])
    found = cosine(products)
    assert np.isnan(found[1]).all() and found[0, 0] == 1.0
    assert effective_rank(found) == pytest.approx(2.0)
    assert np.isnan(effective_rank(np.full((2, 2), np.nan)))
    assert np.isnan(effective_rank(np.array([[1.0, np.nan], [np.nan, 1.0]])))


def test_a_critic_without_an_error_records_no_cosine_and_does_not_fail(tmp_path):
    """Terminal transitions with reward 0 and a critic that answers 0."""
    stage = build(tmp_path, Interference(batch=12, samples=9))
    with torch.no_grad():
        for tensor in stage.agent._state.critic.values():
            tensor.zero_()
    stage.replay._storage.reward[:] = 0.0
    for target in stage.agent._state.target.values():
        target.zero_()
    stage.agent._state.temperature["log"].fill_(-np.inf)
    stage.probes.window()
    assert stage.read("interference")["cosine"].isna().all()
    assert np.isnan(stage.read("interference_rank").iloc[0]["sample_rank"])


def test_of_many_windows_some_spread_over_age(tmp_path):
    stage = build(tmp_path, Interference(windows=4, samples=200), window_steps=5)
    stage.probes.window()
    table, row = stage.read("interference"), stage.read("interference_rank").iloc[0]
    assert sorted(set(table["window"])) == [0, 3, 6, 9]
    assert list(row["transitions"]) == list(range(SIZE)) and row["samples"] == SIZE
