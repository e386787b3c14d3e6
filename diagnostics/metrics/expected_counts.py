"""Exact expectation and variance of sample counts, given the draws actually made.

If D(t) transitions are drawn, independently and with replacement, while t transitions have been
added, transition i (from 0) is one of them with probability p_i(t) = w(t - 1 - i) / S(t), where
w(a) = max(tau, (1 - epsilon)^a) is the weight at age a (paper, section 3.2), S(t) is the sum of the
weights of all min(t, capacity) stored ages, and w = 0 once the transition is evicted. So

    E[n_i]   = sum_t D(t) p_i(t)
    Var[n_i] = sum_t D(t) p_i(t) (1 - p_i(t))

Both follow from one sum, A_i = sum_{t > i} c(t) max(floor, r^(t-1-i)), which takes O(t) operations:
the geometric part is a first-order recursion from the newest transition to the oldest, the floor a
difference of cumulative sums. Uniform replay is epsilon = 0. For sample weight decay, whose weight
is linear in the age, the sums are correlations of the draws with the weights.
"""

from __future__ import annotations

from math import ceil, log

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import fftconvolve, lfilter

from fog.replay.decay import DecayLaw
from fog.replay.linear_decay import LinearLaw

FloatArray = NDArray[np.float64]


def count_moments(
    draws: ArrayLike, epsilon: float, tau: float, capacity: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Expectation and variance of the number of draws of every transition.

    Args:
        draws: entry t - 1 is the number of transitions drawn while t had been added.
        epsilon: decay rate per step of age; 0 is uniform replay.
        tau: minimal weight.
        capacity: transitions kept; None keeps all.

    Returns:
        Two arrays with one entry for each transition added.
    """
    drawn = np.asarray(draws, dtype=np.float64)
    limit = len(drawn) if capacity is None else min(capacity, len(drawn))
    if limit == 0:
        return np.zeros(0), np.zeros(0)
    total = np.cumsum(DecayLaw(epsilon, tau).weights(np.arange(limit)))
    mass = total[np.minimum(np.arange(len(drawn)), limit - 1)]
    expected = _aged_sum(drawn / mass, 1.0 - epsilon, tau, limit)
    squared = _aged_sum(drawn / mass**2, (1.0 - epsilon) ** 2, tau**2, limit)
    return expected, np.maximum(expected - squared, 0.0)


def linear_count_moments(
    draws: ArrayLike, horizon: int, floor: float, capacity: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """The same for sample weight decay, w(a) = max(floor, 1 - a / horizon).

    Args:
        draws: entry t - 1 is the number of transitions drawn while t had been added.
        horizon: age at which the weight would be 0.
        floor: minimal weight.
        capacity: transitions kept; None keeps all.
    """
    drawn = np.asarray(draws, dtype=np.float64)
    limit = len(drawn) if capacity is None else min(capacity, len(drawn))
    if limit == 0:
        return np.zeros(0), np.zeros(0)
    weight = LinearLaw(horizon, floor).weights(np.arange(limit))
    mass = np.cumsum(weight)[np.minimum(np.arange(len(drawn)), limit - 1)]
    expected = _correlation(drawn / mass, weight)
    squared = _correlation(drawn / mass**2, weight**2)
    return expected, np.maximum(expected - squared, 0.0)


def _correlation(c: FloatArray, weight: FloatArray) -> FloatArray:
    """A_i = sum over ages a of c[i + a] weight[a]; `c` is 0 beyond its end."""
    whole = fftconvolve(c, weight[::-1])[len(weight) - 1 :]
    # No transition can be drawn a negative number of times, but for the rounding of the transform.
    return np.asarray(np.maximum(whole, 0.0))


def _aged_sum(c: FloatArray, ratio: float, floor: float, limit: int) -> FloatArray:
    """A_i = sum over ages a < limit of c[i + a] max(floor, ratio^a); `c` is 0 beyond its end."""
    if ratio == 1.0:
        return _window_sum(c, limit)
    # Ages below `k` lie on the geometric part.
    k = limit if floor <= 0.0 else min(limit, max(1, ceil(log(floor) / log(ratio))))
    leaving = np.zeros_like(c)
    leaving[: len(c) - k] = ratio**k * c[k:]
    geometric = lfilter([1.0], [1.0, -ratio], (c - leaving)[::-1])[::-1]
    tail = np.zeros_like(c)
    if k < limit:
        tail[: len(c) - k] = floor * _window_sum(c[k:], limit - k)
    return np.asarray(np.maximum(geometric, 0.0) + tail)


def _window_sum(c: FloatArray, width: int) -> FloatArray:
    """Sum of `width` entries from each entry on."""
    after = np.append(np.cumsum(c[::-1])[::-1], 0.0)
    end = np.minimum(np.arange(len(c)) + width, len(c))
    return np.asarray(after[:-1] - after[end])


def goodness_of_fit(
    counts: ArrayLike, expected: FloatArray, variance: FloatArray
) -> tuple[float, float]:
    """Reduced chi-square of the counts and its z-score.

    Every (n_i - E_i)^2 / Var_i has expectation 1 exactly, so their mean has too. The z-score uses
    the fourth moment of a Poisson count and ignores the weak dependence between counts: with
    thousands of transitions or more it is standard normal if the sampler draws by its law.
    Transitions that cannot have been drawn yet are left out.

    Returns:
        chi-square and z, both NaN if no transition can have been drawn.
    """
    known = variance > 0
    if not known.any():
        return float("nan"), float("nan")
    spread = variance[known]
    excess = (np.asarray(counts, dtype=np.float64)[known] - expected[known]) ** 2 / spread
    size = len(spread)
    chi_square = float(excess.mean())
    return chi_square, (chi_square - 1.0) * size / float(np.sqrt(np.sum(2.0 + 1.0 / spread)))
