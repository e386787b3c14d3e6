"""The theory against sums written out from the paper's definitions, and against simulation."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from math import fsum, log
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import fftconvolve

from diagnostics import theory
from diagnostics.theory.simulation import simulate_counts


def by_definition(n, epsilon=None, tau=0.0, capacity=None):
    """P(i at t) = w / sum(w) over the stored transitions, added up step by step."""
    counts = np.zeros(n)
    for t in range(1, n + 1):
        oldest = 1 if capacity is None else max(1, t - capacity + 1)
        stored = np.arange(oldest, t + 1)
        if epsilon is None:
            weights = np.ones(len(stored))
        else:
            weights = np.array([max(tau, (1 - epsilon) ** (t - i)) for i in stored])
        counts[stored - 1] += weights / weights.sum()
    return counts


LAWS = [
    (None, 0.0),
    (0.0, 0.0),
    (1e-7, 0.0),
    (1e-3, 0.0),
    (0.05, 0.0),
    (0.9, 0.0),
    (1e-7, 0.1),
    (0.01, 0.1),
    (0.05, 0.9),
    (0.05, 1.0),
    (0.3, 1e-6),
]


@pytest.mark.parametrize(("epsilon", "tau"), LAWS)
@pytest.mark.parametrize("capacity", [None, 1, 7, 60, 149, 150, 1000])
@pytest.mark.parametrize("n", [1, 2, 150])
def test_expected_counts_are_the_definition(n, epsilon, tau, capacity):
    counts = theory.expected_counts(n, epsilon, tau, capacity)
    assert counts.shape == (n,)
    assert np.allclose(counts, by_definition(n, epsilon, tau, capacity), rtol=1e-11, atol=0)
    assert counts.sum() == pytest.approx(n, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "tau"), [(1e-5, 0.1), (1e-4, 0.0), (1e-4, 0.01), (1e-7, 0.0)])
@pytest.mark.parametrize("capacity", [None, 300_000])
def test_expected_counts_at_paper_scale(epsilon, tau, capacity):
    n = 1_000_000
    kept = capacity or n
    counts = theory.expected_counts(n, epsilon, tau, capacity)
    weights = theory.decay_weights(kept, epsilon, tau)
    totals = np.cumsum(weights)
    inverse = 1.0 / np.concatenate([totals, np.full(n - kept, totals[-1])])
    for i in (1, 2, 1000, 46_051, 500_000, 900_000, n - 1, n):
        window = inverse[i - 1 : i - 1 + kept]
        exact = fsum(weights[: len(window)] * window)
        assert counts[i - 1] == pytest.approx(exact, rel=1e-9)
    fft = fftconvolve(inverse, weights[::-1])[kept - 1 :]
    assert np.allclose(counts, fft, rtol=1e-7, atol=0)


def test_total_weights_are_sums_of_weights():
    for epsilon, tau in LAWS:
        weights = theory.decay_weights(500, epsilon, tau)
        assert np.allclose(theory.total_weights(500, epsilon, tau), np.cumsum(weights), rtol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 10, 100_000])
def test_theorem_1(n):
    counts = theory.expected_counts(n)
    lower, upper = theory.theorem_1_bounds(n)
    assert (lower < counts).all()
    assert (counts < upper).all()
    harmonic = fsum(1.0 / i for i in range(1, n + 1))
    assert counts[0] == pytest.approx(harmonic, rel=1e-14)
    assert counts[-1] == pytest.approx(1.0 / n, rel=1e-14)
    t = 1 + n // 2
    assert lower[t - 1] == pytest.approx(log(n / (t - 1)) + 1 / n - 1)
    assert upper[t - 1] == pytest.approx(log(n / (t - 1)) + 1 - 1 / (t - 1))


def test_theorem_1_holds_with_equality_at_one_transition():
    lower, upper = theory.theorem_1_bounds(1)
    assert lower[0] == upper[0] == theory.expected_counts(1)[0] == 1.0


@pytest.mark.parametrize("epsilon", [1e-6, 1e-4, 1e-3, 0.00995, 0.0105, 0.1, 0.5, 0.99])
def test_theorem_2(epsilon):
    n = int(min(4e6, 50 / epsilon)) + 100
    counts = theory.expected_counts(n, epsilon)
    assert counts.argmax() == 0
    assert (counts < theory.theorem_2_bound(epsilon) * (1 + 1e-12)).all()
    limit = theory.first_count_limit(epsilon)
    first = theory.first_counts(n, epsilon)
    assert first[-1] == pytest.approx(counts[0], rel=1e-10)
    assert (np.diff(first) >= 0).all()
    tail = 0.02 if epsilon == 1e-6 else 1e-9
    assert first[-1] == pytest.approx(limit, abs=tail)


def test_the_sharp_limit_is_approached_and_the_bound_is_not():
    gaps = [
        abs(theory.first_count_limit(e) - float(theory.theorem_2_sharp_limit(e)))
        for e in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    ]
    assert all(b < a for a, b in pairwise(gaps))
    assert gaps[-1] < 1e-5
    assert theory.first_count_limit(1e-4) == pytest.approx(9.78802, abs=1e-5)
    assert float(theory.theorem_2_bound(1e-4)) == 1e4


@pytest.mark.parametrize(("epsilon", "tau"), [(1e-4, 0.1), (1e-4, 0.01), (1e-3, 0.5), (0.01, 1.0)])
def test_with_a_floor_the_first_count_grows_like_log_n(epsilon, tau):
    for n in (10, 1000, 30_000, 1_000_000):
        closed = theory.first_count_with_floor(n, epsilon, tau)
        assert closed == pytest.approx(theory.first_counts(n, epsilon, tau)[-1], rel=1e-9)
    decades = [theory.first_count_with_floor(10**p, epsilon, tau) for p in (10, 11, 12)]
    assert np.diff(decades) == pytest.approx([log(10)] * 2, rel=1e-4)
    assert decades[-1] == pytest.approx(
        float(theory.first_count_floor_asymptote(10**12, tau)), abs=10 * epsilon
    )
    assert decades[-1] > theory.first_count_limit(epsilon), "Theorem 2 does not cover tau > 0"


def test_a_finite_buffer_ends_the_growth():
    counts = theory.first_counts(5000, 1e-3, 0.1, capacity=1000)
    assert counts[999] == counts[-1]
    assert counts[-1] == pytest.approx(theory.expected_counts(5000, 1e-3, 0.1, 1000)[0], rel=1e-12)


def test_numbers_known_for_the_papers_settings():
    """Draws over beta when updates start at 5,000 steps, summed independently."""
    n, late = 1_000_000, 4999
    for law, expected in {
        (None, 0.0): [5.30, 2.30, 0.69, 0.11],
        (1e-5, 0.1): [3.53, 1.66, 0.90, 0.39],
        (1e-4, 0.1): [3.30, 2.24, 0.75, 0.17],
    }.items():
        counts = theory.expected_counts(n, *law)
        before = theory.first_counts(late, *law)[-1]
        values = [counts[0] - before, counts[99_999], counts[499_999], counts[899_999]]
        assert values == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize("capacity", [None, 700])
@pytest.mark.parametrize(("sampler", "law"), [("uniform", (None, 0.0)), ("decay", (3e-3, 0.05))])
def test_simulation_agrees_with_theory(sampler, law, capacity):
    """The trainer's own samplers, counted: every bin of transitions within 4.5 deviations."""
    n, draws = 3000, 20
    counts = simulate_counts(
        sampler, n, draws=draws, capacity=capacity, epsilon=law[0] or 0.0, tau=law[1]
    )
    assert counts.sum() == n * draws
    expected = theory.expected_counts(n, *law, capacity) * draws
    observed, predicted = counts.reshape(60, 50).sum(1), expected.reshape(60, 50).sum(1)
    assert (np.abs(observed - predicted) < 4.5 * np.sqrt(predicted)).all()
    wrong = theory.expected_counts(n, 9e-3, 0.05, capacity) * draws
    off = np.abs(observed - wrong.reshape(60, 50).sum(1)) / np.sqrt(predicted)
    assert off.max() > 4.5


@pytest.mark.parametrize("sampler", ["uniform", "decay", "per", "cuer"])
def test_simulation_of_every_sampler_is_seeded_and_complete(sampler):
    runs = [simulate_counts(sampler, 300, draws=8, capacity=100, seed=s) for s in (0, 0, 1)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    assert runs[0].sum() == 2400


@pytest.mark.parametrize(
    "bad",
    [
        {"n": 0},
        {"n": 5, "epsilon": -0.1},
        {"n": 5, "epsilon": 0.1, "tau": 2.0},
        {"n": 5, "capacity": 0},
    ],
)
def test_nonsense_is_refused(bad):
    with pytest.raises(ValueError, match="must"):
        theory.expected_counts(**bad)


def test_theory_needs_no_torch():
    code = (
        "import sys, diagnostics.theory, diagnostics.plots.theory;sys.exit('torch' in sys.modules)"
    )
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
