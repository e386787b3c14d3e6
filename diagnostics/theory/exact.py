"""The paper's two theorems, computed exactly, and what they leave out.

Setting: transition i = 1, 2, ... arrives at step i, and after every arrival beta transitions are
drawn (replay ratio x batch size). Transition i has age a = t - i at step t and weight w(a): 1 under
uniform replay, max(tau, (1 - epsilon)^a) under experience replay decay. Everything here is in units
of beta, so that with W(t) the sum of the weights at step t

    E[n_i] / beta = sum_{t=i}^{N} w(t - i) / W(t).

Without eviction W(t) = w(0) + ... + w(t-1); with a buffer of C transitions it stays at W(C) from
step C on, and transition i is gone after step i + C - 1. Either way the sum is a correlation of w
with 1/W; a geometric w turns it into a recursion, a constant w into a difference of partial sums,
and the decayed weight is one followed by the other.

Theorem 1 (uniform): E[n_i] / beta = H_N - H_(i-1), which grows like ln N for the first transition.

Theorem 2 (decay, tau = 0): E[n_i] / beta <= E[n_1] / beta < 1 / epsilon for every N. The bound is
true and loose. With q = 1 - epsilon and W(t) = (1 - q^t) / epsilon,

    E[n_1] / beta -> (epsilon / q) sum_{t>=1} q^t / (1 - q^t) = ln(1/epsilon) + gamma + o(1)

as epsilon -> 0 (gamma is Euler's constant): about 9.8 instead of 10,000 at epsilon = 1e-4.

The floor (tau > 0), which the method uses and Theorem 2 does not cover. Let k be the number of ages
with q^a >= tau and G = W(k) the mass they carry. For t > k the first transition lies on the floor
and W(t) = G + tau (t - k), hence with c = G / tau and psi the digamma function

    E[n_1] / beta = sum_{t=1}^{k} q^(t-1) / W(t) + sum_{m=1}^{N-k} 1 / (c + m)
                  = A + psi(N - k + 1 + c) - psi(1 + c).

The second term is ln N - ln c + o(1): the count of the first transition grows like log N again,
with the same slope 1 as under uniform replay. The constant follows from q^k ~ tau, so that
c ~ (1 - tau) / (epsilon tau), and A ~ ln(1/epsilon) + gamma + ln(1 - tau), giving

    E[n_1] / beta = ln N + gamma + ln tau + o(1)      (N -> infinity, then epsilon -> 0).

Compared with uniform replay, ln N + gamma, a floor tau takes ln(1/tau) off the first transition's
count, once and for all, whatever epsilon is. Only a finite buffer ends the growth.
"""

from __future__ import annotations

from math import exp, expm1, log, log1p

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import lfilter
from scipy.special import digamma

from fog.replay.decay import DecayLaw

FloatArray = NDArray[np.float64]

EULER_GAMMA = float(np.euler_gamma)


def decay_weights(n: int, epsilon: float | None, tau: float = 0.0) -> FloatArray:
    """The weight max(tau, (1 - epsilon)^age) of ages 0 .. n-1; `epsilon=None` is uniform replay."""
    if epsilon is None:
        return np.ones(n)
    _check(epsilon, tau)
    return DecayLaw(epsilon, tau).weights(np.arange(n))


def total_weights(n: int, epsilon: float | None, tau: float = 0.0) -> FloatArray:
    """W(t), the sum of the weights of t stored transitions, for t = 1 .. n, in closed form."""
    stored = np.arange(1, n + 1, dtype=np.float64)
    if epsilon is None or epsilon == 0.0 or tau == 1.0:
        return stored
    above = np.minimum(stored, DecayLaw(epsilon, tau).geometric_ages(n))
    return np.asarray(-np.expm1(above * log1p(-epsilon)) / epsilon + tau * (stored - above))


def expected_counts(
    n: int, epsilon: float | None = None, tau: float = 0.0, capacity: int | None = None
) -> FloatArray:
    """E[n_i] / beta of transitions i = 1 .. n after n additions, drawing after each.

    The entry i - 1 belongs to transition i; their sum is n. `epsilon` is the decay per step, None
    for uniform replay; `tau` the floor of the weight; `capacity` that of the buffer, None keeps
    everything.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    if capacity is not None and capacity < 1:
        raise ValueError(f"capacity must be at least 1, not {capacity}")
    kept = n if capacity is None else min(n, capacity)
    if epsilon is not None:
        _check(epsilon, tau)
    if epsilon is None or epsilon == 0.0 or tau == 1.0:
        return _uniform_counts(n, kept)
    inverse = np.empty(n)
    inverse[:kept] = 1.0 / total_weights(kept, epsilon, tau)
    inverse[kept:] = inverse[kept - 1]
    above = DecayLaw(epsilon, tau).geometric_ages(kept)
    counts = _geometric_sums(inverse, log1p(-epsilon), above)
    if above < kept:
        tails = np.zeros(n + kept + 1)
        tails[:n] = np.cumsum(inverse[::-1])[::-1]
        counts += tau * (tails[above : above + n] - tails[kept : kept + n])
    return counts


def _uniform_counts(n: int, kept: int) -> FloatArray:
    """Uniform replay in closed form: H_n - H_(i-1), or its counterpart with eviction."""
    # Summed from the smallest terms up: no cancellation, full precision for every i.
    harmonic = np.arange(kept, 0, -1, dtype=np.float64)
    np.divide(1.0, harmonic, out=harmonic)
    np.cumsum(harmonic, out=harmonic)
    if kept == n:
        return harmonic[::-1]
    arrival = np.arange(1, n + 1)
    # Draws while the buffer fills (steps i .. kept - 1), then 1 / kept per step until evicted.
    counts = (np.minimum(n, arrival + kept - 1) - np.maximum(arrival, kept) + 1) / kept
    counts[: kept - 1] += harmonic[:0:-1] - harmonic[0]
    return np.asarray(counts)


def _geometric_sums(inverse: FloatArray, log_q: float, length: int) -> FloatArray:
    """y_i = sum_{a < length} q^a inverse_(i+a), with inverse = 0 past its end.

    y_i = inverse_i + q y_(i+1) - q^length inverse_(i+length), run backwards as a recursive filter:
    O(n), and since no two large numbers are subtracted each entry keeps its relative precision
    (an FFT correlation gives the same to 1e-9 of the smallest entries at paper scale).
    """
    inputs = inverse.copy()
    inputs[: len(inverse) - length] -= exp(length * log_q) * inverse[length:]
    return np.asarray(lfilter([1.0], [1.0, -exp(log_q)], inputs[::-1])[::-1])


def _check(epsilon: float, tau: float) -> None:
    if not 0.0 <= epsilon < 1.0:
        raise ValueError(f"epsilon must lie in [0, 1), not {epsilon}")
    if not 0.0 <= tau <= 1.0:
        raise ValueError(f"tau must lie in [0, 1], not {tau}")


def theorem_1_bounds(n: int) -> tuple[FloatArray, FloatArray]:
    """The paper's lower and upper bound on E[n_t] / beta for t = 1 .. n under uniform replay.

    For t > 1: ln(N/(t-1)) + 1/N - 1 and ln(N/(t-1)) + 1 - 1/(t-1); for t = 1, from the proof:
    ln N + 1/N and ln N + 1. They are strict for N > 1; at N = 1 all three numbers are 1.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    earlier = np.arange(1, n, dtype=np.float64)
    lower, upper = np.empty(n), np.empty(n)
    lower[0], upper[0] = log(n) + 1.0 / n, log(n) + 1.0
    np.subtract(log(n), np.log(earlier, out=upper[1:]), out=upper[1:])
    np.add(upper[1:], 1.0 / n - 1.0, out=lower[1:])
    upper[1:] += 1.0
    upper[1:] -= np.divide(1.0, earlier, out=earlier)
    return lower, upper


def theorem_2_bound(epsilon: ArrayLike) -> FloatArray:
    """The paper's bound 1 / epsilon on E[n_i] / beta for tau = 0."""
    return 1.0 / np.asarray(epsilon, dtype=np.float64)


def theorem_2_sharp_limit(epsilon: ArrayLike) -> FloatArray:
    """E[n_1] / beta for tau = 0, N -> infinity and small epsilon: ln(1/epsilon) + gamma."""
    return np.asarray(np.log(1.0 / np.asarray(epsilon, dtype=np.float64)) + EULER_GAMMA)


def first_count_limit(epsilon: float) -> float:
    """E[n_1] / beta for tau = 0 and N -> infinity, exact to rounding for every epsilon in (0, 1).

    The Lambert series L = sum_{t>=1} q^t / (1 - q^t) with x = -ln q has the expansion
    L = (gamma - ln x) / x + 1/4 - x/144 - x^3/86400 + O(x^5); below x = 0.01 the rest is beyond
    double precision, above it the series is summed.
    """
    if not 0.0 < epsilon < 1.0:
        raise ValueError(f"epsilon must lie in (0, 1), not {epsilon}")
    x = -log1p(-epsilon)
    if x < 0.01:
        series = (EULER_GAMMA - log(x)) / x + 0.25 - x / 144.0 - x**3 / 86400.0
    else:
        powers = np.exp(-x * np.arange(1, int(40.0 / x) + 2))
        series = float(np.sum(powers / (1.0 - powers)))
    return epsilon / (1.0 - epsilon) * series


def first_counts(
    n: int, epsilon: float | None = None, tau: float = 0.0, capacity: int | None = None
) -> FloatArray:
    """E[n_1] / beta after 1, 2, ..., n additions: how often the first transition has been drawn."""
    terms = decay_weights(n, epsilon, tau) / total_weights(n, epsilon, tau)
    if capacity is not None:
        terms[capacity:] = 0.0
    return np.cumsum(terms)


def first_count_with_floor(n: int, epsilon: float, tau: float) -> float:
    """E[n_1] / beta after n additions with a floor, by the closed form of the module docstring.

    It costs O(ln(1/tau) / epsilon), whatever n is: the growth can be followed to any n.
    """
    if not (0.0 < epsilon < 1.0 and 0.0 < tau <= 1.0):
        raise ValueError(f"needs 0 < epsilon < 1 and 0 < tau <= 1, not {epsilon}, {tau}")
    log_q = log1p(-epsilon)
    on_decay = DecayLaw(epsilon, tau).geometric_ages(n)
    if n == on_decay:
        return float(first_counts(n, epsilon, tau)[-1])
    start = float(first_counts(on_decay, epsilon, tau)[-1])
    c = -expm1(on_decay * log_q) / epsilon / tau
    return start + float(digamma(n - on_decay + 1.0 + c) - digamma(1.0 + c))


def first_count_floor_asymptote(n: ArrayLike, tau: float) -> FloatArray:
    """E[n_1] / beta for tau > 0 and large N: ln N + gamma + ln tau."""
    return np.asarray(np.log(np.asarray(n, dtype=np.float64)) + EULER_GAMMA + log(tau))
