"""Sample weight decay (SWD, 2026): the weight falls linearly with age down to a floor.

ER decay's nearest relative: w(a) = max(floor, 1 - a/T), a the age in environment steps. Drawn
exactly, as ER decay is. Let k be the number of ages with 1 - a/T > floor. With

    L(a) = sum_{b<a} (1 - b/T) = a - a (a - 1) / (2 T)       (mass of the a youngest, a <= k)

and u uniform on [0, L(k) + floor (n - k)), the age is the whole part of

    u <  L(k):  2 T u / (c + sqrt(c^2 - 2 T u)),  c = T + 1/2     (the root of L(a) = u)
    u >= L(k):  k + (u - L(k)) / floor
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

from fog.errors import ConfigError
from fog.replay.sampler import AgeSampler
from fog.replay.storage import IntArray


class LinearLaw:
    """The weight max(floor, 1 - age / horizon) and its sums."""

    def __init__(self, horizon: int, floor: float) -> None:
        """`horizon` is T, at least 1; `floor` in [0, 1] is the smallest weight."""
        if horizon < 1:
            raise ConfigError(f"swd horizon must be at least 1, not {horizon}")
        if not 0.0 <= floor <= 1.0:
            raise ConfigError(f"swd floor must lie in [0, 1], not {floor}")
        self.horizon = horizon
        self.floor = floor

    def linear_ages(self, n: int) -> int:
        """How many of the ages 0 .. n-1 weigh more than the floor (k above), at least one."""
        return max(1, min(n, ceil(self.horizon * (1.0 - self.floor))))

    def masses(self, n: int) -> tuple[int, float, float]:
        """K, L(k) and the mass of the floor for a buffer of n transitions."""
        k = self.linear_ages(n)
        return k, k - k * (k - 1) / (2.0 * self.horizon), self.floor * (n - k)

    def weights(self, ages: IntArray) -> NDArray[np.float64]:
        """The weight of each age, straight from the definition."""
        return np.asarray(np.maximum(self.floor, 1.0 - ages / self.horizon))

    def ages(self, uniforms: NDArray[np.float64], n: int) -> IntArray:
        """Turn uniforms on [0, 1) into ages by the inverse distribution function."""
        k, linear, flat = self.masses(n)
        u = uniforms * (linear + flat)
        twice, c = 2.0 * self.horizon, self.horizon + 0.5
        # Beyond the linear part the root is not used, and need not exist.
        below = np.minimum(u, linear)
        ages = twice * below / (c + np.sqrt(np.maximum(c * c - twice * below, 0.0)))
        ages = np.minimum(ages, k - 1)
        if flat > 0.0:
            ages = np.where(u < linear, ages, k + (u - linear) / self.floor)
        return np.minimum(ages, n - 1).astype(np.int64)


class LinearDecaySampler(AgeSampler):
    """Sample weight decay."""

    name = "swd"

    def __init__(self, rng: np.random.Generator, horizon: int, floor: float) -> None:
        """See `LinearLaw` for the settings."""
        super().__init__(rng, LinearLaw(horizon, floor), {"horizon": horizon, "floor": floor})
