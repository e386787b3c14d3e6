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
    """Build a sampler; settings of the other samplers are ignored.

    Args:
        name: One of `SAMPLERS`.
        capacity: Capacity of the replay it serves.
        rng: The replay's random stream.
        epsilon: Decay per environment step (`decay`).
        tau: Floor of the weight (`decay`, `swd`).
        alpha: Exponent of the priorities (`per`).
        beta: First exponent of the importance weights (`per`).
        beta_final: Their exponent after `total_steps` environment steps (`per`).
        total_steps: Length of the run in environment steps (`per`).
        quota: Draws owed to a new transition: the batch size (`cuer`).
        floor: Smallest priority, in draws (`cuer`).
        horizon: Environment steps in which the weight would fall to 0 (`swd`).
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
