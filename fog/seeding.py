"""Named random streams from one seed.

Every consumer of randomness owns a stream, so that adding a probe or an evaluation never shifts the
numbers another part draws. There is no global generator anywhere.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


def _entropy(name: str) -> int:
    """A stable integer for a stream name: Python's own `hash` changes between processes."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def seed_sequence(seed: int, name: str, *indices: int) -> np.random.SeedSequence:
    """The seed of stream `name` (and of its `indices`-th child) of a run with `seed`."""
    return np.random.SeedSequence([seed, _entropy(name), *indices])


def generator(seed: int, name: str, *indices: int) -> np.random.Generator:
    """A numpy generator for stream `name`, for example `generator(0, "replay")`."""
    return np.random.Generator(np.random.PCG64(seed_sequence(seed, name, *indices)))


def integer_seed(seed: int, name: str, *indices: int) -> int:
    """A 31-bit integer seed for libraries that take no generator, such as environments.

    `integer_seed(seed, "env", k)` seeds training episode k: an episode depends on nothing before
    it, so a run can be resumed exactly.
    """
    return int(seed_sequence(seed, name, *indices).generate_state(1, np.uint32)[0] >> 1)


def get_state(rng: np.random.Generator) -> dict[str, Any]:
    """The generator's state as plain data for a checkpoint."""
    return dict(rng.bit_generator.state)


def set_state(rng: np.random.Generator, state: dict[str, Any]) -> None:
    """Restore what `get_state` returned."""
    rng.bit_generator.state = state
