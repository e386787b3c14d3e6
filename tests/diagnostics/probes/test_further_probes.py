"""The probes beyond the paper against brute force on a buffer of 50 transitions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from diagnostics.probes.churn import Churn
from diagnostics.probes.disagreement import Disagreement
from diagnostics.probes.norms import Norms
from diagnostics.probes.overestimation import Overestimation
from diagnostics.probes.plasticity import Plasticity
from diagnostics.probes.srank import (
    Srank,
    effective_rank,
    feature_rank,
    pca_rank,
    singular_values,
    srank,
)
from diagnostics.probes.validation import Validation
from fog.events import Change
from fog.networks import critic_forward
from fog.probing.dispatch import Probes
from tests.diagnostics.probes.stage import SIZE, actor_loss, build, episodes, normals, play
from tests.fog.networks.tapped import actor_layers, critic_layers


def test_srank_of_known_matrices():
    rng = np.random.default_rng(0)
    left, right = np.linalg.qr(rng.standard_normal((60, 6)))[0], np.eye(6)
    for sigma, rank in (([1] * 6, 6), ([1, 1, 1, 0, 0, 0], 3), ([98, 1, 1, 0, 0, 0], 2)):
        matrix = left * np.array(sigma) @ right
        assert srank(singular_values(matrix)) == srank(singular_values(matrix.T)) == rank
    assert srank(singular_values(np.zeros((5, 3)))) == 0


def test_other_ranks_of_known_singular_values():
    even, one, none = np.full(6, 2.0), np.array([3.0, 0, 0, 0]), np.zeros(3)
    assert effective_rank(even) == pytest.approx(6) and effective_rank(one) == pytest.approx(1)
    assert pca_rank(even) == 6 and pca_rank(one) == 1
    # 3 of 4 hold 97.8 % of the sum and 99.9 % of the sum of squares.
    assert srank(np.array([4.0, 4, 4, 0.27])) == 4 and pca_rank(np.array([4.0, 4, 4, 0.27])) == 3
    assert feature_rank(np.array([1.0, 0.11, 0.09]), 100) == 2
    assert effective_rank(none) == pca_rank(none) == feature_rank(none, 5) == 0


def test_srank_table_equals_a_singular_value_decomposition(tmp_path):
    stage = build(tmp_path, Srank(per_window=4))
    table = stage.read("srank").query("env_step == 50")
    assert set(table["critic"]) == {"online", "offline"} and len(table) == 4
    batch = stage.everything()
    for _, row in table.iterrows():
        features = stage.agent.networks.features(batch.obs, batch.action, row["critic"])
        sigma = np.linalg.svd(features[row["member"]].double().numpy(), compute_uv=False)
        share = np.cumsum(sigma) / sigma.sum()
        assert row["srank"] == np.argmax(share >= 0.99) + 1
        np.testing.assert_allclose(row["singular_values"], sigma, rtol=1e-6, atol=1e-6)
        entropy = -np.sum(sigma / sigma.sum() * np.log(sigma / sigma.sum()))
        assert row["effective_rank"] == pytest.approx(np.exp(entropy), rel=1e-6)
        squares = np.cumsum(sigma**2) / np.sum(sigma**2)
        assert row["pca_rank"] == np.argmax(squares >= 0.99) + 1
        assert row["feature_rank"] == np.linalg.matrix_rank(
            features[row["member"]] / np.sqrt(50), 0.01
        )
        assert row["width"] == stage.agent.spec.width


def reference_loss(stage, network, params, batch, noise):
    """Training loss per transition and penultimate features of a network with these parameters."""
    rule, found = stage.agent.hyper, stage.agent.networks.transition_losses(batch, noise)
    if network == "actor":
        policy, layers = actor_layers(params, batch.obs, rule.activation, rule.log_std)
        return actor_loss(stage, batch, noise, *policy), layers["hidden1"]
    if network == "value":
        values, layers = critic_layers(params, batch.obs, rule.activation)
        above = found["value"].target - values[0]
        weight = torch.where(above < 0, 1 - rule.expectile, rule.expectile)
        return weight * above.square(), layers["features"]
    inputs = torch.cat([batch.obs, batch.action], dim=-1)
    values, layers = critic_layers(params, inputs, rule.activation)
    target = found[network].target
    return (values - target).square().sum(dim=0), layers["features"]


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


def test_overestimation_by_definition(tmp_path):
    stage = build(tmp_path, Overestimation(), variant="expanded-sac", discount=0.9)
    made = episodes()
    stage.probes.evaluation(made)
    row = stage.read("overestimation").iloc[0]
    rng, networks, gamma = stage.rng("overestimation"), stage.agent.networks, 0.9
    gaps, soft_gaps, tails = [], [], []
    for episode in made:
        length = len(episode.rewards)
        obs = torch.from_numpy(episode.observations)
        bonus = stage.view.agent.entropy_bonus(obs, normals(rng, length + 1)).numpy()
        final = obs[-1:]
        beyond = networks.q_values(final, torch.tanh(networks.policy(final)[0])).min().item()
        q = networks.q_values(obs[:-1], torch.from_numpy(episode.actions)).min(dim=0).values
        # ln 0.05 / ln 0.9 = 28.4 steps is more than half of either episode.
        for t in range(length if episode.terminated else length - 6):
            left = length - t
            total = sum(gamma**k * episode.rewards[t + k] for k in range(left))
            entropy = sum(gamma**k * bonus[t + k] for k in range(1, left))
            if not episode.terminated:
                total += gamma**left * beyond
                entropy += gamma**left * bonus[length]
                tails.append(gamma**left)
            else:
                tails.append(0.0)
            gaps.append(q[t].item() - total)
            soft_gaps.append(q[t].item() - total - entropy)
    assert row["states"] == 13
    assert row["bias"] == pytest.approx(np.mean(gaps), rel=1e-6)
    assert row["soft_bias"] == pytest.approx(np.mean(soft_gaps), rel=1e-6)
    assert row["tail"] == pytest.approx(np.mean(tails), rel=1e-9)
    assert row["bias"] == pytest.approx(row["q"] - row["mc_return"], rel=1e-9)


def test_overestimation_without_discount(tmp_path):
    """Other people's agents may have gamma 1: half of a truncated episode is compared."""
    stage = build(tmp_path, variant="expanded-sac")
    facts = dataclasses.replace(stage.view.facts, discount=1.0)
    observed, made = stage.view.agent, episodes()
    Probes([Overestimation()], facts, stage.progress, observed, stage.replay, tmp_path).evaluation(
        made
    )
    row = stage.read("overestimation").iloc[0]
    final = torch.from_numpy(made[1].observations[-1:])
    beyond = observed.q_values("online", final, observed.action(final)).min().item()
    returns = [made[0].rewards[t:].sum() for t in range(7)]
    returns += [made[1].rewards[t:].sum() + beyond for t in range(6)]
    assert row["states"] == 13
    assert row["mc_return"] == pytest.approx(np.mean(returns), rel=1e-6)
    assert row["tail"] == pytest.approx(6 / 13)


def test_validation_is_the_loss_on_evaluation_transitions(tmp_path):
    stage = build(tmp_path, Validation())
    made = episodes()
    stage.probes.evaluation(made)
    table = stage.read("validation").set_index("critic")
    noise = normals(stage.rng("validation"), 19)
    rows, k = [], 0
    for episode in made:
        for t in range(len(episode.rewards)):
            last = t == len(episode.rewards) - 1
            ends = 0.0 if last and episode.terminated else 1.0
            one = stage.everything()._replace(
                obs=torch.from_numpy(episode.observations[t : t + 1]),
                action=torch.from_numpy(episode.actions[t : t + 1]),
                reward=torch.from_numpy(episode.rewards[t : t + 1]),
                bootstrap=torch.tensor([ends]),
                next_obs=torch.from_numpy(episode.observations[t + 1 : t + 2]),
                weight=torch.ones(1),
            )
            found = stage.agent.networks.transition_losses(one, noise[k : k + 1])
            losses = [found[name].loss for name in ("online", "offline", "value")]
            rows.append([*losses, found["offline"].target])
            k += 1
    found = np.array([[float(part) for part in row] for row in rows])
    for column, critic in enumerate(("online", "offline", "value")):
        assert table.loc[critic, "mean"] == pytest.approx(found[:, column].mean(), rel=1e-6)
        assert table.loc[critic, "std"] == pytest.approx(found[:, column].std(), rel=1e-6)
        assert table.loc[critic, "count"] == 19
    wanted = found[:, 1].mean() / found[:, 3].var()
    assert table.loc["offline", "scaled"] == pytest.approx(wanted, rel=1e-6)


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
