"""The off-policy probe against brute force, and the density it rests on."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from diagnostics.probes.offpolicy import OffPolicy
from fog.networks import sample_action, squashed_log_density
from tests.diagnostics.probes.stage import SIZE, build

EDGE = 1 - 1e-6
DOUBLE = {"dtype": torch.float64}


def test_log_density_of_a_sampled_action_is_that_of_the_sample():
    mean, log_std, noise = torch.randn(3, 200, 4, generator=torch.manual_seed(0), **DOUBLE)
    drawn = sample_action(mean, 0.2 * log_std, noise.clamp(-2, 2))
    wanted = torch.distributions.TransformedDistribution(
        torch.distributions.Normal(mean, (0.2 * log_std).exp()),
        [torch.distributions.TanhTransform()],
    )
    found = squashed_log_density(mean, 0.2 * log_std, drawn.action)
    torch.testing.assert_close(found, wanted.log_prob(drawn.action).sum(dim=-1))
    torch.testing.assert_close(found, drawn.log_prob, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mean", [0.0, 2.5, -20.0])
def test_the_density_adds_up_to_one_with_its_saturated_strips(mean):
    """Integrated over u = atanh(a), where the points lie as densely as the mass."""
    gaussian = (torch.tensor([[mean]], **DOUBLE), torch.zeros(1, 1, **DOUBLE))
    u = torch.linspace(-math.atanh(EDGE), math.atanh(EDGE), 1_000_001, **DOUBLE)[1:-1]
    density = squashed_log_density(*gaussian, torch.tanh(u)[:, None]).exp()
    total = torch.trapezoid(density * (1 - torch.tanh(u).square()), u).item()
    bounds = torch.tensor([[-1.0], [1.0]], **DOUBLE)
    total += 1e-6 * squashed_log_density(*gaussian, bounds).exp().sum().item()
    assert total == pytest.approx(1.0, abs=1e-4)


def test_an_action_rounded_to_one_is_likely_under_a_saturated_policy():
    """By atanh at a clipped action it would be more than a hundred nats less likely."""
    mean, log_std = torch.full((1, 1), 25.0), torch.zeros(1, 1)
    action = torch.tanh(mean)
    assert action.item() == 1.0
    found = squashed_log_density(mean, log_std, action).item()
    assert found == pytest.approx(-math.log(1e-6), rel=1e-6)
    assert squashed_log_density(mean, log_std, -action).item() < -500


@pytest.mark.parametrize("added", [SIZE, 73])
def test_offpolicy_by_single_transitions(tmp_path, added):
    stage = build(tmp_path, OffPolicy(batch=15), added=added)
    storage = stage.replay._storage
    storage.action[:7] = np.where(storage.action[:7] > 0, 1.0, -1.0)
    stage.probes.window()
    table, rng = stage.read("offpolicy").set_index("window"), stage.rng("offpolicy")
    stored = np.arange(added - SIZE, added)
    assert list(table.index) == sorted(set((stored // 20).tolist()))
    for window, row in table.iterrows():
        mine = stored[stored // 20 == window]
        ids = mine if len(mine) <= 15 else mine[0] + np.sort(rng.choice(len(mine), 15, False))
        log_prob, distance, saturated = [], [], []
        for i in ids:
            one = stage.replay.take(np.array([i]))
            mean, log_std = (part[0] for part in stage.agent.networks.policy(one.obs))
            action = one.action[0]
            density = 0.0
            for a, mu, std in zip(
                action.tolist(), mean.tolist(), log_std.exp().tolist(), strict=True
            ):
                if abs(a) > EDGE:
                    beyond = (math.atanh(EDGE) - math.copysign(mu, a * mu)) / std
                    density += math.log(0.5 * math.erfc(beyond / math.sqrt(2)) / 1e-6)
                else:
                    z = (math.atanh(a) - mu) / std
                    density -= z**2 / 2 + math.log(std * math.sqrt(2 * math.pi) * (1 - a**2))
            log_prob.append(density)
            distance.append(float((action - torch.tanh(mean)).square().sum().sqrt()))
            saturated.append(float((action.abs() == 1).double().mean()))
        wanted = {
            "count": len(ids),
            "age": np.mean(added - 1 - ids),
            "window_start": 20 * window,
            "window_end": 20 * window + 20,
            "log_prob": np.mean(log_prob),
            "log_prob_std": np.std(log_prob),
            "log_prob_median": np.median(log_prob),
            "distance": np.mean(distance),
            "distance_std": np.std(distance),
            "saturated": np.mean(saturated),
        }
        for name, value in wanted.items():
            assert row[name] == pytest.approx(value, rel=1e-6), (window, name)
    assert (table["saturated"] > 0).any()
