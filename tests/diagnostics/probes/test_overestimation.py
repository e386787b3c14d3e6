"""Overestimation against its definition."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from diagnostics.probes.overestimation import Overestimation
from fog.probing.dispatch import Probes
from tests.diagnostics.probes.stage import build, episodes, normals


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
