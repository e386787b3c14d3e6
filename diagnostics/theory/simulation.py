"""Sample counts by seeded Monte Carlo, with the very samplers that train.

The one analysis module that uses `fog.replay`: it draws ids with the trainer's code, without torch
and without an environment, so that theory and practice are compared and not theory with itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fog.replay import Counts, make_sampler
from fog.seeding import generator


def simulate_counts(
    sampler: str,
    n: int,
    *,
    draws: int,
    capacity: int | None = None,
    epsilon: float = 1e-4,
    tau: float = 0.01,
    seed: int = 0,
) -> NDArray[np.int64]:
    """How often each of n transitions is drawn when `draws` are drawn after every addition.

    Divide by `draws` (beta in the paper: replay ratio x batch size) to compare with
    `diagnostics.theory.expected_counts`. A capacity of None keeps everything; `epsilon` and `tau`
    are those of `decay`.

    `per` needs TD errors, and without a network there are none. It is given errors that shrink with
    practice: a transition drawn m times has |TD error| 1 / sqrt(1 + m). All draws of an addition
    are one batch, which is also what `cuer` owes a transition: replay ratio 1, where its two
    readings agree.
    """
    kept = n if capacity is None else min(n, capacity)
    chosen = make_sampler(
        sampler,
        capacity=kept,
        rng=generator(seed, "replay"),
        epsilon=epsilon,
        tau=tau,
        quota=float(draws),
        total_steps=n,
    )
    counts = Counts()
    counts.reserve(n)
    for transition in range(n):
        chosen.add(transition)
        added = transition + 1
        oldest = max(0, added - kept)
        ids, _ = chosen.draw(1, draws, oldest, added)
        counts.record(ids)
        if sampler == "per":
            drawn = ids.ravel()
            chosen.update(drawn, (1.0 + counts.values[drawn]) ** -0.5, oldest)
    return counts.values.astype(np.int64)
