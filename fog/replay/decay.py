"""Experience replay decay: exact sampling by age at a cost that the buffer's size does not enter.

The paper weights transition i at time t by w(a) = max(tau, q^a) with q = 1 - epsilon and age
a = t - i in environment steps (section 3.2), and draws it with probability w / sum(w). The weight
depends on the age alone and ages are 0 .. n-1, so the law is known in closed form: q^a for the k
youngest ages, tau for the rest, where k counts the ages with q^a >= tau. With

    G = sum_{a<k} q^a = (1 - q^k) / epsilon        (mass of the geometric part)
    F = tau * (n - k)                              (mass of the floor)

and u uniform on [0, G + F), the inverse of the distribution function is

    u <  G:  a = floor( ln(1 - u * epsilon) / ln q )
    u >= G:  a = k + floor( (u - G) / tau )

`log1p` and `expm1` keep every digit for epsilon down to 1e-7 and below.

No case distinction is needed: floor(max(g, f)) is the age, where g is the first expression before
rounding down, held at its value k from u = G on, and f the second. For u >= G, f >= k = g. For
u < G: g - f is convex, 0 at u = G and not negative at G - q^(k-1), where g = k - 1 and f =
k - q^(k-1) / tau <= k - 1. So g >= f left of that point, and right of it both lie in [k - 1, k).
"""

from __future__ import annotations

from math import expm1, log, log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fog.errors import ConfigError
from fog.replay.sampler import AgeSampler
from fog.replay.storage import IntArray

# Largest float below 1: keeps ln(1 - u * epsilon) finite where u * epsilon rounds to 1.
_BELOW_ONE = 1.0 - 2.0**-53


class _Inverse(NamedTuple):
    """The constants of the inverse distribution function for one buffer size."""

    to_power: float
    lowest: float
    to_age: float
    floor_slope: float
    floor_start: float


class DecayLaw:
    """The weight max(tau, (1 - epsilon)^age) and its sums."""

    def __init__(self, epsilon: float, tau: float) -> None:
        """`epsilon` in [0, 1] is the decay per environment step; 0 is uniform replay.

        `tau` in [0, 1] is the floor of the weight; 1 is uniform replay, 0 is no floor.
        """
        if not 0.0 <= epsilon <= 1.0:
            raise ConfigError(f"decay epsilon must lie in [0, 1], not {epsilon}")
        if not 0.0 <= tau <= 1.0:
            raise ConfigError(f"decay tau must lie in [0, 1], not {tau}")
        self.epsilon = epsilon
        self.tau = tau
        self.log_q = log1p(-epsilon) if epsilon < 1.0 else -np.inf
        # Kept for the buffer size used last: a full buffer does not change its size.
        self._inverse_for = 1
        self._inverse = self._prepare(1)

    def geometric_ages(self, n: int) -> int:
        """How many of the ages 0 .. n-1 lie on the geometric part (k above)."""
        if self.epsilon == 0.0:
            return n
        if self.epsilon == 1.0:
            return 1
        if self.tau == 0.0:
            return n
        last = log(self.tau) / self.log_q
        return n if last >= n else int(last) + 1

    def masses(self, n: int) -> tuple[int, float, float]:
        """k, G and F for a buffer of n transitions."""
        k = self.geometric_ages(n)
        geometric = float(k) if self.epsilon == 0.0 else -expm1(k * self.log_q) / self.epsilon
        return k, geometric, self.tau * (n - k)

    def weights(self, ages: IntArray) -> NDArray[np.float64]:
        """The weight of each age, straight from the definition."""
        if self.epsilon == 1.0:
            return np.where(ages == 0, 1.0, self.tau)
        return np.asarray(np.maximum(self.tau, np.exp(ages * self.log_q)))

    def ages(self, uniforms: NDArray[np.float64], n: int) -> IntArray:
        """Turn uniforms on [0, 1) into ages by the inverse distribution function, in place."""
        if self.epsilon == 0.0:
            uniforms *= n
            return np.minimum(uniforms, n - 1, out=uniforms).astype(np.int64)
        if n != self._inverse_for:
            self._inverse, self._inverse_for = self._prepare(n), n
        inverse = self._inverse
        ages = uniforms * inverse.to_power
        np.maximum(ages, inverse.lowest, out=ages)
        np.log1p(ages, out=ages)
        ages *= inverse.to_age
        # Also where there is no floor and this changes nothing: a draw costs the same at any size.
        uniforms *= inverse.floor_slope
        uniforms += inverse.floor_start
        np.maximum(ages, uniforms, out=ages)
        return np.minimum(ages, n - 1, out=ages).astype(np.int64)

    def _prepare(self, n: int) -> _Inverse:
        k, geometric, floor = self.masses(n)
        total = geometric + floor
        # A floor lost in rounding beside the geometric part is never drawn from.
        has_floor = total > geometric
        return _Inverse(
            to_power=-total * self.epsilon,
            lowest=-min(geometric * self.epsilon, _BELOW_ONE),
            to_age=1.0 / self.log_q if self.epsilon > 0.0 else 0.0,
            floor_slope=total / self.tau if has_floor else 0.0,
            floor_start=k - geometric / self.tau if has_floor else 0.0,
        )


class DecaySampler(AgeSampler):
    """Experience replay decay."""

    name = "decay"

    def __init__(self, rng: np.random.Generator, epsilon: float, tau: float) -> None:
        """See `DecayLaw` for the settings."""
        super().__init__(rng, DecayLaw(epsilon, tau), {"epsilon": epsilon, "tau": tau})
