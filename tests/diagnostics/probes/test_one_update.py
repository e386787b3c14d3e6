"""What one update changes, and distances to birth, against explicit weights before and after."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from diagnostics.probes.churn import Churn
from diagnostics.probes.norms import Norms
from fog.agent import Networks
from fog.events import Change
from fog.replay import Batch
from tests.diagnostics.probes.stage import ACT, build, normals, play, promote

MEASURED = (17, 20, 25, 30, 35, 40, 45, 50)
"""Environment steps of a stage of 50 at which a probe with per_window=4 measures."""


def trained(stage, rng, monkeypatch):
    """A copy of the agent after a real update, on what the probe draws from `rng` next."""
    size, stored = 16, stage.replay.size
    ids = np.sort(stage.replay.added - stored + rng.choice(stored, size, replace=False))
    noise = torch.from_numpy(rng.standard_normal((2, size, ACT), dtype=np.float32))
    other = copy.deepcopy(stage.agent)
    # The copied view would still look at the original.
    other.networks = Networks(lambda: other._state, other.backend)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "randn", lambda *_, **__: noise)
        other.update(Batch(*(column.unsqueeze(0) for column in stage.replay.take(ids))))
    return other


def skip(rng, rows, networks):
    """Advance a stream by what `norms` draws at one measurement on `rows` stored transitions."""
    for _ in range(networks):
        normals(rng, rows)
    rng.choice(rows, 16, replace=False)
    rng.standard_normal((2, 16, ACT), dtype=np.float32)


def trees(agent):
    networks = agent.networks
    found = {"online": networks.critic("online"), "actor": networks.actor()}
    if agent.hyper.offline:
        found |= {"offline": networks.critic("offline"), "value": networks.value_net()}
    return found


def copied(agent):
    return {
        f"{network}/{name}": tensor.clone()
        for network, tree in trees(agent).items()
        for name, tensor in tree.items()
    }


@pytest.mark.parametrize("variant", ["fog", "expanded-sac"])
def test_norms_by_layer_and_what_one_update_changes(tmp_path, monkeypatch, variant):
    stage = build(tmp_path, Norms(per_window=4), variant=variant, bc_wait_updates=0)
    table = stage.read("layer_norms").query("env_step == 50")
    table = table.set_index(table["network"] + "/" + table["layer"] + "." + table["parameter"])
    rng, networks = stage.rng("norms"), len(stage.view.agent.networks)
    for rows in MEASURED[:-1]:
        skip(rng, rows, networks)
    noise = {name: normals(rng, 50) for name in stage.view.agent.networks}
    before, after = copied(stage.agent), copied(trained(stage, rng, monkeypatch))
    assert set(table.index) == set(before) and len(table) == len(before)
    for network in trees(stage.agent):
        gradients = stage.view.agent.gradients(network, stage.everything(), noise[network])
        for name, gradient in gradients.items():
            row, key = table.loc[f"{network}/{name}"], f"{network}/{name}"
            norm = before[key].norm().item()
            assert row["size"] == before[key].numel()
            assert row["norm"] == pytest.approx(norm, rel=1e-9)
            assert row["gradient_norm"] == pytest.approx(gradient.norm().item(), rel=1e-9)
            moved = (after[key] - before[key]).norm().item()
            assert moved > 0
            assert row["update_norm"] == pytest.approx(moved, rel=1e-9)
            assert row["effective_lr"] == pytest.approx(moved / norm, rel=1e-9)
            assert row["gradient_ratio"] == pytest.approx(row["gradient_norm"] / norm, rel=1e-9)


def test_distance_to_birth_across_an_expansion_and_a_reset(tmp_path):
    stage = build(tmp_path, Norms(per_window=4), added=0, expansion_updates=(1000, 2000))
    stage.probes.start()
    births = copied(stage.agent)
    born = dict.fromkeys(births, 0)

    def check():
        table = stage.read("layer_norms")
        table = table[table["env_step"] == stage.progress.env_step]
        now = copied(stage.agent)
        assert len(table) == len(now)
        for _, row in table.iterrows():
            key = f"{row['network']}/{row['layer']}.{row['parameter']}"
            wanted = (now[key] - births[key]).norm().item()
            assert row["birth_distance"] == pytest.approx(wanted, rel=1e-9, abs=1e-12), key
            assert row["birth_distance"] > 0 and row["born"] == born[key], key

    def change(kind, apply):
        stage.probes.change(Change(kind, "before"))
        apply()
        promote(stage.agent)
        stage.probes.change(Change(kind, "after"))

    play(stage, 30)
    check()
    change("expansion", stage.agent.expand)
    fresh = {key: tensor for key, tensor in copied(stage.agent).items() if key not in births}
    assert fresh and all(".inner." in key or ".outer." in key for key in fresh)
    births |= fresh
    born |= dict.fromkeys(fresh, 30)
    play(stage, 10)
    check()
    change("reset", stage.agent.reset)
    births = copied(stage.agent)
    born = dict.fromkeys(births, 40)
    play(stage, 5)
    check()


@pytest.mark.parametrize("variant", ["fog", "expanded-sac"])
def test_churn_of_one_update(tmp_path, monkeypatch, variant):
    probe = Churn(batch=8, per_window=4)
    stage = build(tmp_path, probe, variant=variant, bc_wait_updates=0)
    row = stage.read("update_churn").query("env_step == 50").iloc[0]
    rng = stage.rng("churn")
    windows = [step // 20 for step in MEASURED]
    for k, rows in enumerate(MEASURED):
        if k == 0 or windows[k] != windows[k - 1]:
            rng.choice(rows, 8, replace=False)
        if rows < 50:
            skip(rng, rows, 0)
    other = trained(stage, rng, monkeypatch)
    obs, action = (torch.from_numpy(probe._arrays[name]) for name in ("obs", "action"))

    def gaussian(agent):
        mean, log_std = agent.networks.policy(obs)
        return torch.distributions.Normal(mean, log_std.exp())

    old, new = gaussian(stage.agent), gaussian(other)
    kl = torch.distributions.kl_divergence(old, new).sum(dim=-1).mean().item()
    assert kl > 0
    assert row["policy_kl"] == pytest.approx(kl, rel=1e-6)
    moved = (torch.tanh(new.mean) - torch.tanh(old.mean)).norm(dim=-1).mean().item()
    assert row["policy_churn"] == pytest.approx(moved, rel=1e-6)
    q, later = (agent.networks.q_values(obs, action).mean(dim=0) for agent in (stage.agent, other))
    change = (later - q).abs().mean().item()
    assert row["q_churn"] == pytest.approx(change, rel=1e-6)
    assert row["q_churn_scaled"] == pytest.approx(change / q.std(correction=0).item(), rel=1e-6)


def test_an_update_on_a_copy_leaves_the_agent_as_it_was(tmp_path):
    stage = build(tmp_path)
    before, counters = stage.agent.state_dict(), stage.agent.counters()
    batch = stage.everything()
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 50, ACT)))
    stage.view.agent.updated(batch, noise)
    after = stage.agent.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert stage.agent.counters() == counters
