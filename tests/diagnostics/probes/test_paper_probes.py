"""The paper's four probes against brute force on a buffer of 50 transitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diagnostics.probes.critic_loss import CriticLoss
from diagnostics.probes.dormancy import Dormancy
from diagnostics.probes.features import Features
from diagnostics.probes.sample_counts import SampleCounts
from fog import losses
from fog.agents import transition_losses
from fog.events import Change
from tests.diagnostics.probes.stage import ACT, SIZE, build, normals, play, promote

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
        found = transition_losses(stage.agent._state, one, noise[k : k + 1], stage.agent.rule)
        rows.append([None if part is None else part.item() for part in found])
    columns = {"online": (0, 1), "offline": (3, 4), "value": (5, 6)}
    if not stage.agent.rule.offline:
        columns = {"online": (0, 1)}
    table, raw = stage.read("critic_loss"), stage.read("critic_loss_raw")
    assert set(table["critic"]) == set(columns)
    assert set(table["env_step"]) == {added}
    for critic, (at, target_at) in columns.items():
        loss = np.array([row[at] for row in rows])
        target = np.array([row[target_at] for row in rows])
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
            }
            for name, value in wanted.items():
                assert row[name] == pytest.approx(value, rel=1e-6), (critic, name)


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
    subject, batch = stage.view.subject, stage.everything()
    noise = normals(np.random.default_rng(0), SIZE)
    monkeypatch.setattr("fog.subject._WORTH_COMPILING", 0)
    monkeypatch.setattr("fog.subject._CACHED_VALUES", 0)
    stage.agent.compiled = True
    rows, losses = subject.bulk_losses(SIZE)
    assert rows == 64 and losses != subject.losses
    ids = np.arange(64) % SIZE
    wide, long = stage.replay.take(ids), noise[torch.from_numpy(ids)]
    found, wanted = losses(wide, long), subject.losses(wide, long)
    assert found.keys() == wanted.keys()
    for critic in wanted:
        torch.testing.assert_close(found[critic].loss, wanted[critic].loss, rtol=1e-4, atol=1e-5)
    rest = losses(batch, noise)["online"].loss
    assert torch.equal(rest, subject.losses(batch, noise)["online"].loss)


@pytest.mark.parametrize("variant", ["sac", "balanced-sac"])
@pytest.mark.parametrize("added", [SIZE, 90])
def test_sample_counts_beside_their_expectation(tmp_path, variant, added):
    settings = {"epsilon": 0.05, "tau": 0.2} if variant == "balanced-sac" else {}
    stage = build(tmp_path, SampleCounts(bins=7), variant=variant, added=added, **settings)
    stage.probes.window()
    expected, variance = np.zeros(added), np.zeros(added)
    for t in range(17, added + 1):
        stored = np.arange(max(0, t - SIZE), t)
        weight = np.ones(len(stored))
        if variant == "balanced-sac":
            weight = np.maximum(0.2, 0.95 ** (t - 1 - stored))
        p = weight / weight.sum()
        expected[stored] += 16 * p
        variance[stored] += 16 * p * (1 - p)
    counts = stage.replay.counts
    table = stage.read("sample_counts")
    assert table["start"].iloc[0] == 0 and table["end"].iloc[-1] == added and len(table) == 7
    for _, row in table.iterrows():
        inside = slice(int(row["start"]), int(row["end"]))
        assert row["count"] == counts[inside].sum()
        assert row["expected"] == pytest.approx(expected[inside].sum(), rel=1e-9)
        assert row["variance"] == pytest.approx(variance[inside].sum(), rel=1e-9)
    fit = stage.read("sample_fit").iloc[0]
    assert fit["draws"] == counts.sum() == table["expected"].sum().round(6)
    known = variance > 0
    chi = np.mean((counts[known] - expected[known]) ** 2 / variance[known])
    assert fit["chi_square"] == pytest.approx(chi, rel=1e-9)
    assert abs(fit["z"]) < 4
    full = stage.read("sample_counts_full")["counts"].iloc[0]
    assert np.array_equal(full, counts)


def test_sample_counts_leaves_open_what_has_no_closed_form(tmp_path):
    stage = build(tmp_path, SampleCounts(), variant="per-sac")
    stage.probes.window()
    assert stage.read("sample_counts")["expected"].isna().all()
    assert stage.read("sample_fit")["chi_square"].isna().all()
    assert stage.read("sample_counts")["count"].sum() == stage.replay.counts.sum()


def test_sample_counts_that_joined_late_claims_no_expectation(tmp_path):
    stage = build(tmp_path, SampleCounts())
    stage.probes._probes["sample_counts"]._draws[:30] = 0
    stage.probes.window()
    assert stage.read("sample_fit")["chi_square"].isna().all()


def perturbed_loss(stage, network, batch, noise, layer, where, amount):
    """The network's summed loss with `amount` added to one neuron's output on every row."""
    networks, rule = stage.agent.networks, stage.agent.rule
    width = stage.agent.spec.width
    if network == "actor":
        bump = {layer: torch.zeros(len(noise), width, dtype=torch.float64)}
        bump[layer][:, where[1]] = amount
        (mean, log_std), _ = networks.policy_layers(batch.obs, bump)
        before = mean + log_std.exp() * noise
        action = torch.tanh(before)
        density = torch.distributions.Normal(mean, log_std.exp()).log_prob(before)
        log_prob = (density - torch.log1p(-action.square())).sum(dim=-1)
        value = losses.combine(networks.q_values(batch.obs, action), rule.pessimism)
        return networks.temperature * log_prob - value
    bump = {layer: torch.zeros(2, len(noise), width, dtype=torch.float64)}
    bump[layer][where[0], :, where[1]] = amount
    values, _ = networks.q_layers(batch.obs, batch.action, network, bump)
    found = networks.transition_losses(batch, noise)
    target = found.target if network == "online" else found.offline_target
    return (values - target).square().sum(dim=0)


@pytest.mark.parametrize(("network", "layer"), [("online", "stem"), ("offline", "block1.inner")])
def test_dormancy_scores_of_critics(tmp_path, network, layer):
    check_dormancy(tmp_path, network, layer, bc_wait_updates=10_000)


def test_dormancy_scores_of_the_actor(tmp_path):
    check_dormancy(tmp_path, "actor", "hidden0", bc_wait_updates=10_000)


def check_dormancy(tmp_path, network, layer, **settings):
    stage = build(tmp_path, Dormancy(), **settings)
    stage.probes.change(Change("reset", "before"))
    rng = stage.rng("dormancy")
    batch = stage.everything()
    table = stage.read("dormancy").query("phase == 'before reset'")
    # The noise of earlier measurements comes first in the stream.
    first = stage.read("dormancy").query("phase == 'cadence'")["env_step"].unique()
    for rows in [*first, SIZE]:
        for name in stage.view.subject.networks:
            noise = normals(rng, int(rows))
            if rows == SIZE and name == network:
                wanted = noise
    row = table.query(f"network == '{network}' and layer == '{layer}' and member == 0").iloc[0]
    if network == "actor":
        outputs = stage.agent.networks.policy_layers(batch.obs)[1][layer]
    else:
        outputs = stage.agent.networks.q_layers(batch.obs, batch.action, network)[1][layer][0]
    np.testing.assert_allclose(row["activation"], outputs.abs().mean(dim=0), **CLOSE)
    for neuron in range(stage.agent.spec.width):
        step = 1e-6
        up, down = (
            perturbed_loss(stage, network, batch, wanted, layer, (0, neuron), sign * step)
            for sign in (1, -1)
        )
        slope = ((up - down) / (2 * step)).abs().mean().item()
        assert row["gradient"][neuron] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_dormancy_gradients_equal_autograd_to_rounding(tmp_path):
    stage = build(tmp_path, Dormancy(), variant="fog")
    batch, noise = stage.everything(), normals(np.random.default_rng(0), SIZE)
    networks = stage.agent.networks
    target = networks.transition_losses(batch, noise).offline_target
    for layer, hidden in stage.view.subject.hidden("offline", batch, noise).items():
        zero = torch.zeros_like(hidden.output, requires_grad=True)
        values, _ = networks.q_layers(batch.obs, batch.action, "offline", {layer: zero})
        loss = losses.critic_loss(values, target)
        (wanted,) = torch.autograd.grad(loss.sum(), [zero])
        torch.testing.assert_close(hidden.gradient, wanted, rtol=1e-9, atol=1e-12)


def test_dormancy_sees_every_layer_before_and_after_changes(tmp_path):
    stage = build(tmp_path, Dormancy())
    stage.probes.change(Change("expansion", "before"))
    stage.agent.expand()
    promote(stage.agent)
    stage.probes.change(Change("expansion", "after"))
    table = stage.read("dormancy")
    before = table[table["phase"] == "before expansion"]
    after = table[table["phase"] == "after expansion"]
    grown = set(after["layer"]) - set(before["layer"])
    assert grown == {"block2.inner", "block2.outer"}
    assert set(before["network"]) == {"online", "offline", "value", "actor"}
    # The same batch before and after: what did not change scores the same.
    same = ["network", "layer", "member"]
    pairs = before.merge(after, on=same).query("network == 'actor' or layer == 'stem'")
    for _, row in pairs.iterrows():
        assert np.array_equal(row["activation_x"], row["activation_y"])
    counted = before[before["network"] == "online"].groupby("member").size()
    assert list(counted) == [stage.agent.dense_layers - 2] * 2


def test_dormancy_cadence(tmp_path):
    stage = build(tmp_path, Dormancy(per_window=4))
    table = stage.read("dormancy")
    assert sorted(table["env_step"].unique()) == [17, 20, 25, 30, 35, 40, 45, 50]


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
    target = networks.transition_losses(batch, noise).target
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
    assert sorted(stage.read("features")["env_step"].unique()) == [20, 30, 45]
