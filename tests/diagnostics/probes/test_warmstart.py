"""The warm-start probe: Adam written out by hand, and critics whose ability is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from diagnostics.probes.warmstart import WarmStart
from fog import seeding
from fog.agent import build_agent
from fog.networks import critic_forward
from fog.probing.dispatch import Counters, Probes
from fog.probing.observed import ObservedFogAgent, facts_of
from fog.replay import Replay, make_sampler
from tests.diagnostics.probes.stage import ACT, OBS, build, normals
from tests.training import tiny


def adam_by_hand(stage, params, inputs, z, order, lr, fitted, outset=None):
    """Loss curves (fitted, held out) of each member after every step.

    `outset` is the output that counts as 0 and the unit; None takes today's and its spread.
    """
    params = {name: tensor.clone() for name, tensor in params.items()}
    first = {name: torch.zeros_like(tensor) for name, tensor in params.items()}
    second = {name: torch.zeros_like(tensor) for name, tensor in params.items()}
    activation = stage.agent.hyper.activation
    start = critic_forward(params, inputs, activation)
    unit = start[:, :fitted].std(dim=1, keepdim=True, correction=0)
    if outset is not None:
        start, unit = outset
    curves = []
    for step in range(len(order) + 1):
        leaves = {name: tensor.detach().requires_grad_() for name, tensor in params.items()}
        errors = ((critic_forward(leaves, inputs, activation) - start) / unit - z) ** 2
        parts = (errors[:, :fitted].mean(dim=1), errors[:, fitted:].mean(dim=1))
        curves.append(torch.stack(parts).detach().numpy())
        if step == len(order):
            break
        rows = order[step]
        loss = sum(errors[member, rows].mean() for member in range(len(errors)))
        loss.backward()
        for name, leaf in leaves.items():
            first[name] = 0.9 * first[name] + 0.1 * leaf.grad
            second[name] = 0.999 * second[name] + 0.001 * leaf.grad**2
            corrected = first[name] / (1 - 0.9 ** (step + 1))
            scale = (second[name] / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8
            params[name] = leaf.detach() - lr * corrected / scale
    return np.stack(curves)


@pytest.mark.parametrize("variant", ["fog", "sac"])
def test_both_fits_by_adam_written_out(tmp_path, variant):
    settings = {"window_steps": 40, "critic_lr": 1e-2}
    stage = build(
        tmp_path, WarmStart(rows=20, steps=12, batch=6), variant=variant, added=40, **settings
    )
    before = stage.agent.state_dict()
    stage.probes.window()
    after = stage.agent.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(tensor.grad is None for tensor in stage.agent.networks.critic().values())

    rng, networks = stage.rng("warmstart"), stage.agent.networks
    ids = rng.permutation(np.sort(rng.choice(40, 20, replace=False)))
    batch, noise = stage.replay.take(ids), normals(rng, 20)
    order = rng.integers(0, 16, (12, 6))
    y = networks.transition_losses(batch, noise)["online"].target
    z = (y - y[:16].mean()) / y[:16].std(correction=0)
    today = networks.critic()
    fresh = stage.view.agent.fresh("online", rng)
    inputs = torch.cat([batch.obs, batch.action], dim=-1)
    table = stage.read("warmstart")
    assert list(table["fit"] + table["member"].astype(str)) == [
        "targets0", "targets1", "change0", "change1",
    ]  # fmt: skip
    assert set(table["rows"]) == {16} and set(table["held_out"]) == {4}
    given = (stage, inputs, z, order, stage.agent.critic_lr, 16)
    sized = {"today": (y[:16].mean(), y[:16].std(correction=0)), "fresh": (0.0, 1.0)}
    found = {
        (kind, name): adam_by_hand(given[0], params, *given[1:], outset)
        for name, params in (("today", today), ("fresh", fresh))
        for kind, outset in (("targets", sized[name]), ("change", None))
    }
    for _, row in table.iterrows():
        member, steps = row["member"], row["steps"]
        curves = {name: found[row["fit"], name] for name in ("today", "fresh")}
        assert steps[0] == 0 and steps[-1] == 12
        for name, curve in curves.items():
            np.testing.assert_allclose(row[f"{name}_fitted"], curve[steps, 0, member], rtol=1e-6)
            np.testing.assert_allclose(row[name], curve[steps, 1, member], rtol=1e-6)
        for column, part in (("gap_fitted", 0), ("gap", 1)):
            wanted = np.log(curves["today"][12, part, member] / curves["fresh"][12, part, member])
            assert row[column] == pytest.approx(wanted, rel=1e-5, abs=1e-9)
        if row["fit"] == "change":
            assert row["today"][0] == pytest.approx(row["fresh"][0], rel=1e-12), "one start"


def test_a_fresh_critic_is_one_of_birth(tmp_path):
    """Of today's depth, and different from seed to seed."""
    stage = build(tmp_path)
    stage.agent.expand()
    one, other = (stage.view.agent.fresh("offline", np.random.default_rng(s)) for s in (0, 1))
    live = stage.view.agent.parameters("offline")
    assert {n: t.shape for n, t in one.items()} == {n: t.shape for n, t in live.items()}
    for name, tensor in one.items():
        if name.endswith(".weight"):
            assert not torch.equal(tensor, other[name]) and not torch.equal(tensor[0], tensor[1])
            _, rows, columns = tensor.shape
            small = tensor[0] if rows >= columns else tensor[0].T
            gram = small.T @ small
            torch.testing.assert_close(
                gram, 2.0 * torch.eye(len(gram), dtype=gram.dtype), atol=1e-5, rtol=0
            )
        else:
            assert (tensor == (1.0 if name.endswith(".scale") else 0.0)).all()


def learnable_replay(seed: int, size: int) -> Replay:
    """Terminal transitions whose reward is a smooth function of state and action."""
    rng = np.random.default_rng(seed)
    mix = rng.standard_normal((OBS + ACT, 4))
    sampler = make_sampler("uniform", capacity=size, rng=seeding.generator(0, "replay"))
    replay = Replay(OBS, ACT, size, sampler=sampler)
    for _ in range(size):
        obs, action = rng.standard_normal(OBS), rng.uniform(-1, 1, ACT)
        replay.begin_episode(obs)
        reward = np.sin(np.concatenate([obs, action]) @ mix).sum()
        replay.add(action, float(reward), rng.standard_normal(OBS), True, False)
    return replay


def gap(home: Path, seed: int, kill: bool) -> np.ndarray:
    """Gaps by targets and by change of a newborn critic, or of one with half its neurons dead."""
    size = 800
    settings = {"critic_layer_norm": False, "width": 32}
    settings |= {"window_steps": size, "capacity": size, "steps": size, "warmup_steps": 16}
    settings |= {"expansion_updates": (), "reset_steps": ()}
    config = tiny(home, "sac", seed=seed, **settings)
    agent = build_agent(config, OBS, ACT)
    if kill:
        for layer in ("stem", "hidden"):
            agent._state.critic[f"{layer}.bias"][..., ::2] = -100.0
    replay, observed = learnable_replay(seed, size), ObservedFogAgent(agent)
    where = home / f"{seed}{kill}"
    Probes([WarmStart()], facts_of(config), Counters(size), observed, replay, where).window()
    (part,) = (where / "warmstart").glob("*.parquet")
    table = pd.read_parquet(part)
    return table.groupby("fit")["gap"].mean()[["targets", "change"]].to_numpy()


def error(found):
    """Standard error of a mean over seeds."""
    return found.std(axis=0, ddof=1) / np.sqrt(len(found))


def test_the_gap_has_the_right_sign_beyond_its_noise(tmp_path):
    newborn, dead = (
        np.array([gap(tmp_path, seed, kill) for seed in range(6)]) for kill in (False, True)
    )
    # Of a seed, both have the same birth, the same data and the same fresh rival.
    lost = dead - newborn
    # By targets a newborn critic's output is taken for Q itself, so only `change` expects 0 of it.
    assert abs(newborn.mean(axis=0)[1]) < 3 * error(newborn)[1], newborn
    assert (dead > 0).all(), dead
    assert dead.mean(axis=0)[1] > 3 * error(dead)[1], dead
    assert lost.mean(axis=0)[1] > 3 * error(lost)[1], lost


def test_the_gap_does_not_depend_on_the_size_of_q(tmp_path):
    """A head and its targets a million times as large, as in an agent that diverged."""
    stage = build(
        tmp_path, WarmStart(rows=20, steps=12, batch=6), variant="sac", added=40, window_steps=40
    )
    replay = stage.replay._storage
    for exponent in (0, 20):
        replay.reward[:] *= 2.0**exponent
        with torch.no_grad():
            for tree in (stage.agent._state.critic, stage.agent._state.target):
                tree["head.weight"] *= 2.0**exponent
                tree["head.bias"] *= 2.0**exponent
            stage.agent._state.temperature["log"].fill_(-np.inf)
        stage.progress.env_step = exponent
        stage.probes._views["warmstart"].rng.bit_generator.state = stage.rng(
            "warmstart"
        ).bit_generator.state
        stage.probes.window()
    table = stage.read("warmstart")
    small, large = (table[table["env_step"] == exponent].reset_index() for exponent in (0, 20))
    for member in range(4):
        np.testing.assert_allclose(
            small.loc[member, "fresh"], large.loc[member, "fresh"], rtol=1e-6
        )
        assert large.loc[member, "today"][0] == pytest.approx(small.loc[member, "today"][0])


@pytest.mark.parametrize("added", [1, 9])
def test_a_window_that_is_too_small_is_a_row_of_nan(tmp_path, added):
    stage = build(tmp_path, WarmStart(steps=2), added=added)
    stage.probes.window()
    table = stage.read("warmstart")
    assert list(table["member"]) == [0, 1] * 2 and table["gap"].isna().all()
    assert set(table["rows"] + table["held_out"]) == {added}


def test_targets_that_say_nothing_are_a_row_of_nan(tmp_path):
    """All equal, or not finite because the critic diverged."""
    stage = build(tmp_path, WarmStart(steps=2), variant="sac", added=20)
    for value in (0.0, np.nan):
        stage.replay._storage.reward[:] = value
        for tensor in stage.agent._state.target.values():
            tensor.zero_()
        stage.agent._state.temperature["log"].fill_(-np.inf)
        stage.progress.env_step += 1
        stage.probes.window()
    table = stage.read("warmstart")
    assert len(table) == 8 and table["gap"].isna().all()


def test_a_constant_critic_is_measured_all_the_same(tmp_path):
    """Dead from the head on: it has no spread to measure its output by."""
    stage = build(
        tmp_path, WarmStart(rows=20, steps=12, batch=6), variant="sac", added=40, window_steps=40
    )
    stage.agent._state.critic["head.weight"].zero_()
    stage.probes.window()
    assert np.isfinite(stage.read("warmstart")["gap"]).all()
