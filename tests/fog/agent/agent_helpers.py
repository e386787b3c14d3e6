"""Small agents and batches made by hand."""

from __future__ import annotations

import torch

from fog.agent import Batch, build_agent
from fog.algorithms.state import flatten, unflatten
from fog.settings.variants import resolve

OBS, ACT, SIZE = 5, 2, 16


def make_agent(variant="fog", compiled=False, **overrides):
    settings = {"width": 16, "batch_size": SIZE} | overrides
    config = resolve("HalfCheetah-v4", variant, **settings)
    return build_agent(config, OBS, ACT, compiled=compiled)


def make_batch(count=1, seed=0, size=SIZE):
    g = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(count, size, *shape, generator=g)

    return Batch(
        obs=normal(OBS),
        action=torch.tanh(normal(ACT)),
        reward=normal(),
        bootstrap=(normal() > -1).float(),
        next_obs=normal(OBS),
        weight=torch.rand(count, size, generator=g) + 0.5,
    )


def one(batch, index=0):
    return Batch(*(tensor[index] for tensor in batch))


def same(a, b):
    """Bit-equal flat dictionaries of tensors."""
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def doubled(state):
    """A copy in double precision, except Adam's step counters, which torch wants in float32."""
    return unflatten(
        {
            name: tensor.clone() if name.endswith("/step") else tensor.double()
            for name, tensor in flatten(state)
        },
        type(state),
    )
