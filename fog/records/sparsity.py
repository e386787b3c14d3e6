"""How sparse the layers of Neuroplastic Expansion begin, from their shapes alone.

A share of all weights is masked, spread by Erdos and Renyi's rule: the density of a layer is
epsilon (inputs + outputs) / (inputs x outputs), with one epsilon for the network. Layers that this
would make denser than dense are dense, and epsilon is found again for the others.
"""

from __future__ import annotations

from math import prod

from fog.records.sizes import Shapes

SPARSITY = 0.8
"""Masked share of all weights and LayerNorm scales at birth."""


def sparse_layers(shapes: Shapes) -> dict[str, float]:
    """Masked share of every layer that is not dense, by the name of its weights.

    Members of an ensemble are alike, so one of them decides.
    """
    layers = {
        name: member_shape(shape)
        for name, shape in shapes.items()
        if name.endswith((".weight", ".scale"))
    }
    raw = {name: sum(shape) / prod(shape) for name, shape in layers.items()}
    sizes = {name: prod(shape) for name, shape in layers.items()}
    sparse = set(layers)
    while True:
        # As many weights are kept as the whole network shall have, less those of dense layers.
        wanted = sum(
            size * ((1.0 - SPARSITY) if name in sparse else -SPARSITY)
            for name, size in sizes.items()
        )
        epsilon = wanted / sum(raw[name] * sizes[name] for name in sparse)
        densest = max(raw[name] for name in sparse)
        if densest * epsilon <= 1.0:
            return {name: 1.0 - epsilon * raw[name] for name in layers if name in sparse}
        sparse -= {name for name in sparse if raw[name] == densest}


def kept(shapes: Shapes) -> dict[str, int]:
    """Active weights at birth, of one member, of every layer that is not dense."""
    return {
        name: size - int(share * size)
        for name, share in sparse_layers(shapes).items()
        for size in (prod(member_shape(shapes[name])),)
    }


def member_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Without the ensemble, and a LayerNorm's without its row."""
    return tuple(size for k, size in enumerate(shape) if k > 0 and not (k == 1 and size == 1))
