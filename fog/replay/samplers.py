"""Samplers by name."""

from __future__ import annotations

import numpy as np

from fog.errors import ConfigError
from fog.replay.decay import DecaySampler
from fog.replay.linear_decay import LinearDecaySampler
from fog.replay.prioritised import CorrectedUniformSampler, PrioritisedSampler
from fog.replay.sampler import Sampler, UniformSampler

SAMPLERS = ("uniform", "decay", "per", "cuer", "swd")


def make_sampler(
    name: str,
    *,
    capacity: int,
    rng: np.random.Generator,
    epsilon: float = 1e-5,
    tau: float = 0.1,
    alpha: float = 0.6,
    beta: float = 0.4,
    beta_final: float = 1.0,
    total_steps: int = 1_000_000,
    quota: float = 256.0,
    floor: float = 0.01,
    horizon: int = 250_000,
) -> Sampler:
    """Build a sampler for a replay of this capacity; settings of the other samplers are ignored.

    `epsilon` is the decay per environment step of `decay`, `tau` the floor of its weight and of
    that of `swd`, whose weight would fall to 0 in `horizon` steps. `per` has priorities to the
    power `alpha` and importance weights to the power `beta`, annealed to `beta_final` over
    `total_steps` environment steps. `cuer` owes a new transition `quota` draws, the batch size, and
    has no priority below `floor` draws.
    """
    if name == "uniform":
        return UniformSampler(rng)
    if name == "decay":
        return DecaySampler(rng, epsilon, tau)
    if name == "per":
        return PrioritisedSampler(rng, capacity, alpha, beta, beta_final, total_steps)
    if name == "cuer":
        return CorrectedUniformSampler(rng, capacity, quota, floor)
    if name == "swd":
        return LinearDecaySampler(rng, horizon, tau)
    raise ConfigError(f"unknown sampler {name!r}: choose one of {', '.join(SAMPLERS)}")
