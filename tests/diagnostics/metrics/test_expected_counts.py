"""Exact moments of sample counts: brute force, simulation, and the theory module."""

from __future__ import annotations

import numpy as np
import pytest

from diagnostics import theory
from diagnostics.metrics.expected_counts import count_moments, goodness_of_fit, linear_count_moments

CASES = [(0.0, 1.0), (0.05, 0.0), (0.05, 0.2), (0.3, 0.01), (0.5, 1.0), (1e-7, 0.1)]


@pytest.mark.parametrize(("epsilon", "tau"), CASES)
@pytest.mark.parametrize("capacity", [None, 1, 17, 40, 100])
def test_moments_equal_brute_force(epsilon, tau, capacity):
    draws = np.random.default_rng(0).integers(0, 5, 80) * (np.arange(80) > 10)
    expected, variance = np.zeros(80), np.zeros(80)
    for t in range(1, 81):
        stored = np.arange(max(0, t - (capacity or 80)), t)
        weight = np.maximum(tau, (1 - epsilon) ** (t - 1.0 - stored))
        p = weight / weight.sum()
        expected[stored] += draws[t - 1] * p
        variance[stored] += draws[t - 1] * p * (1 - p)
    found = count_moments(draws, epsilon, tau, capacity)
    np.testing.assert_allclose(found[0], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[1], variance, rtol=1e-8, atol=1e-9)
    assert found[0].sum() == pytest.approx(draws.sum())


@pytest.mark.parametrize(("horizon", "floor"), [(1, 0.0), (7, 0.0), (30, 0.1), (500, 0.01)])
@pytest.mark.parametrize("capacity", [None, 1, 17, 40, 100])
def test_moments_of_sample_weight_decay_equal_brute_force(horizon, floor, capacity):
    draws = np.random.default_rng(0).integers(0, 5, 80) * (np.arange(80) > 10)
    expected, variance = np.zeros(80), np.zeros(80)
    for t in range(1, 81):
        stored = np.arange(max(0, t - (capacity or 80)), t)
        weight = np.maximum(floor, 1 - (t - 1.0 - stored) / horizon)
        p = weight / weight.sum()
        expected[stored] += draws[t - 1] * p
        variance[stored] += draws[t - 1] * p * (1 - p)
    found = linear_count_moments(draws, horizon, floor, capacity)
    np.testing.assert_allclose(found[0], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[1], variance, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("capacity", [None, 300])
def test_agrees_with_the_theory_of_one_unit_per_step(capacity):
    ones = np.ones(1000)
    uniform, _ = count_moments(ones, 0.0, 1.0, capacity)
    np.testing.assert_allclose(uniform, theory.expected_counts(1000, capacity=capacity), rtol=1e-9)
    decayed, _ = count_moments(ones, 0.01, 0.1, capacity)
    wanted = theory.expected_counts(1000, epsilon=0.01, tau=0.1, capacity=capacity)
    np.testing.assert_allclose(decayed, wanted, rtol=1e-9)


def test_the_paper_scale_keeps_its_digits():
    draws = np.full(300_000, 2560.0)
    expected, variance = count_moments(draws, 1e-5, 0.1, 1_000_000)
    assert expected.sum() == pytest.approx(draws.sum(), rel=1e-9)
    assert (expected > 0).all() and (variance > 0).all()


def test_chi_square_of_the_right_and_of_a_wrong_law():
    rng = np.random.default_rng(1)
    counts, draws = np.zeros(2000, np.int64), np.full(2000, 8)
    draws[:50] = 0
    for t in range(51, 2001):
        np.add.at(counts, rng.integers(0, t, 8), 1)
    chi_square, z = goodness_of_fit(counts, *count_moments(draws, 0.0, 1.0))
    assert abs(z) < 4 and chi_square == pytest.approx(1.0, abs=0.2)
    _, wrong = goodness_of_fit(counts, *count_moments(draws, 0.002, 0.1))
    assert wrong > 20
    assert np.isnan(goodness_of_fit([0], np.zeros(1), np.zeros(1))[0])
