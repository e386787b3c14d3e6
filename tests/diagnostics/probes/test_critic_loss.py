"""The loss over the whole buffer against brute force on a buffer of 50 transitions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from diagnostics.probes.critic_loss import CriticLoss
from tests.diagnostics.probes.stage import SIZE, build, normals
from tests.fog.networks.tapped import critic_layers

CLOSE = {"rtol": 1e-6, "atol": 1e-6}


@pytest.mark.parametrize("variant", ["fog", "expanded-sac", "per-sac"])
@pytest.mark.parametrize("added", [SIZE, 73])
def test_critic_loss_is_the_training_loss_of_each_transition(tmp_path, variant, added):
    stage = build(tmp_path, CriticLoss(raw=True), variant=variant, added=added)
    stage.probes.window()
    noise = normals(stage.rng("critic_loss"), SIZE)
    rows = []
    for k, i in enumerate(range(added - SIZE, added)):
        one = stage.replay.take(np.array([i]))
        rows.append(stage.agent.networks.transition_losses(one, noise[k : k + 1]))
    critics = ("online", "offline", "value") if stage.agent.hyper.offline else ("online",)
    table, raw = stage.read("critic_loss"), stage.read("critic_loss_raw")
    assert set(table["critic"]) == set(critics)
    assert set(table["env_step"]) == {added}
    for critic in critics:
        found = [row[critic] for row in rows]
        loss, target = np.array([[part.loss.item(), part.target.item()] for part in found]).T
        kept = raw[raw["critic"] == critic].iloc[0]
        assert kept["first"] == added - SIZE
        np.testing.assert_allclose(kept["loss"], loss, **CLOSE)
        windows = np.arange(added - SIZE, added) // 20
        mine = table[table["critic"] == critic]
        assert list(mine["window"]) == sorted(set(windows.tolist()))
        for _, row in mine.iterrows():
            inside = windows == row["window"]
            assert (row["window_start"], row["window_end"]) == (
                20 * row["window"],
                20 * row["window"] + 20,
            )
            ids = np.arange(added - SIZE, added)[inside]
            assert row["count"] == inside.sum()
            assert row["age"] == np.mean(added - 1 - ids)
            wanted = {
                "mean": loss[inside].mean(),
                "std": loss[inside].std(),
                "target_mean": target[inside].mean(),
                "target_variance": target[inside].var(),
                "scaled": loss[inside].mean() / target[inside].var(),
                "squared_error": loss[inside].mean(),
            }
            for name, value in wanted.items():
                assert row[name] == pytest.approx(value, rel=1e-6), (critic, name)


def test_a_quantile_critic_has_its_loss_and_the_squared_error_of_its_mean(tmp_path):
    stage = build(tmp_path, CriticLoss(), variant="bro", added=SIZE, window_steps=SIZE)
    stage.probes.window()
    noise, batch = normals(stage.rng("critic_loss"), SIZE), stage.everything()
    networks = stage.agent.networks
    found = networks.transition_losses(batch, noise)["online"]
    (row,) = stage.read("critic_loss").to_dict("records")
    assert row["mean"] == pytest.approx(found.loss.double().mean().item(), rel=1e-6)
    means = networks.q_values(batch.obs, batch.action)
    target = found.quantiles.mean(dim=-1)
    squared = (means - target).double().square().sum(dim=0).mean().item()
    assert row["squared_error"] == pytest.approx(squared, rel=1e-5)
    assert row["target_mean"] == pytest.approx(target.double().mean().item(), rel=1e-6)
    assert row["squared_error"] != pytest.approx(row["mean"], rel=0.1)


def test_the_scaled_loss_of_a_constant_critic(tmp_path):
    """Twins that answer with the mean target have 2: the loss is a sum over both."""
    stage = build(tmp_path, CriticLoss(), window_steps=SIZE)
    found = stage.view.agent.losses(stage.everything(), normals(stage.rng("critic_loss"), SIZE))
    with torch.no_grad():
        params = stage.agent._state.critic
        params["head.weight"].zero_()
        params["head.bias"][:2] = found["online"].target.mean()
        params["head.bias"][2:] = found["offline"].target.mean()
    stage.probes.window()
    scaled = stage.read("critic_loss").set_index("critic")["scaled"]
    assert scaled["online"] == pytest.approx(2.0, rel=1e-6)
    assert scaled["offline"] == pytest.approx(2.0, rel=1e-6)


def test_in_mixed_precision_losses_are_mixed_and_values_are_not(tmp_path):
    stage = build(tmp_path, double=False, precision="bfloat16")
    batch, noise = stage.everything(), normals(np.random.default_rng(0), SIZE)
    full = dataclasses.replace(stage.agent.hyper, mixed_precision=False)
    mixed, exact = (
        stage.agent.backend.transition_losses(stage.agent._state, batch, noise, hyper)[
            "online"
        ].loss
        for hyper in (stage.agent.hyper, full)
    )
    seen = stage.view.agent.losses(batch, noise)["online"].loss
    assert torch.equal(seen, mixed) and not torch.equal(seen, exact)
    inputs, params = torch.cat([batch.obs, batch.action], dim=-1), stage.agent.networks.critic()
    q = stage.view.agent.q_values("online", batch.obs, batch.action)
    assert torch.equal(q, critic_layers(params, inputs, full.activation)[0])


def test_critic_loss_accumulates_in_double_precision(tmp_path):
    stage = build(tmp_path, CriticLoss(raw=True), double=False)
    stage.probes.window()
    raw = stage.read("critic_loss_raw").set_index("critic").loc["online", "loss"]
    row = stage.read("critic_loss").query("critic == 'online' and window == 1").iloc[0]
    exact = np.asarray(raw[20:40], np.float64)
    assert row["mean"] == pytest.approx(exact.mean(), rel=1e-12)
    assert row["std"] == pytest.approx(exact.std(), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["fog", "expanded-sac"])
def test_the_compiled_loss_is_the_same_loss(tmp_path, monkeypatch, variant):
    stage = build(tmp_path, variant=variant, double=False)
    observed, batch = stage.view.agent, stage.everything()
    noise = normals(np.random.default_rng(0), SIZE)
    monkeypatch.setattr("fog.probing.observed._WORTH_COMPILING", 0)
    monkeypatch.setattr("fog.probing.observed._CACHED_VALUES", 0)
    stage.agent.compiled = True
    rows, losses = observed.bulk_losses(SIZE)
    assert rows == 64 and losses != observed.losses
    ids = np.arange(64) % SIZE
    wide, long = stage.replay.take(ids), noise[torch.from_numpy(ids)]
    found, wanted = losses(wide, long), observed.losses(wide, long)
    assert found.keys() == wanted.keys()
    for critic in wanted:
        torch.testing.assert_close(found[critic].loss, wanted[critic].loss, rtol=1e-4, atol=1e-5)
    rest = losses(batch, noise)["online"].loss
    assert torch.equal(rest, observed.losses(batch, noise)["online"].loss)
