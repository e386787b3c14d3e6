"""The action gradient of min(Q1, Q2), going back through each row's smaller twin only.

The minimum passes no gradient to the larger twin, so half of the rows of a full backward pass are
zero. Sorted by twin, the other half are two products with a border between them that only the data
knows. A compiler wants to know every shape beforehand, so that one product is an operation of its
own; everything around it has fixed shapes and is compiled as usual.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from fog.networks.backward import Dense, Tape, to_stem
from fog.networks.layers import Activation, Params

PAYS_FROM = 256
"""Width from which it saves time: at 64 sorting the rows costs more, at 128 as much."""

_LIBRARY = torch.library.Library("fog", "DEF")  # type: ignore[no-untyped-call]
_SCHEMA = "picked_product(Tensor rows, Tensor weights, Tensor border) -> Tensor"
_LIBRARY.define(_SCHEMA)  # type: ignore[no-untyped-call]


def _picked_product(rows: Tensor, weights: Tensor, border: Tensor) -> Tensor:
    """`rows` (B, n) up to `border` times the first of `weights` (2, n, m), the rest the second."""
    at = int(border)
    product = rows.new_empty(len(rows), weights.shape[2])
    torch.mm(rows[:at], weights[0], out=product[:at])
    torch.mm(rows[at:], weights[1], out=product[at:])
    return product


_LIBRARY.impl("picked_product", _picked_product, "CPU")  # type: ignore[no-untyped-call]


@torch.library.register_fake("fog::picked_product")  # type: ignore[untyped-decorator]
def _shape(rows: Tensor, weights: Tensor, border: Tensor) -> Tensor:
    return rows.new_empty(len(rows), weights.shape[2])


@register_flop_formula(torch.ops.fog.picked_product)
def _flops(rows: Any, weights: Any, border: Any, *args: Any, **kwargs: Any) -> int:
    return int(2 * rows[0] * weights[1] * weights[2])


def picked_action_gradient(
    params: Params, tape: Tape, values: Tensor, activation: Activation, act_dim: int
) -> Tensor:
    """Gradient of the mean of min(Q1, Q2) in the last `act_dim` inputs, (B, act_dim).

    Args:
        params: the twins' tree.
        tape: their forward pass.
        values: what it gave, (2, B); where twins tie the first is picked.
        activation: name of the activation.
        act_dim: length of an action.
    """
    pick = (values[1] < values[0]).long()
    order = torch.argsort(pick, stable=True)
    twin, border = pick[order], len(pick) - pick.sum()

    def rows(stacked: Tensor) -> Tensor:
        """Each row of its own twin, (1, B, n); what twins do not share by rows is repeated."""
        at = order if stacked.shape[1] > 1 else torch.zeros_like(order)
        return stacked[twin, at].unsqueeze(0)

    def product(left: Tensor, right: Tensor) -> Tensor:
        picked: Tensor = torch.ops.fog.picked_product(left[0], right, border)
        return picked.unsqueeze(0)

    chosen = dict(params)
    layers = {}
    for key, layer in tape.layers.items():
        normal, spread = layer.normal, layer.spread
        if normal is not None and spread is not None:
            normal, spread = rows(normal), rows(spread)
            chosen[f"{key}.scale"] = rows(params[f"{key}.scale"])
        layers[key] = Dense(layer.inputs, normal, spread, rows(layer.output))
    chosen["head.weight"] = rows(params["head.weight"].transpose(1, 2)).transpose(1, 2)
    slope = torch.full_like(values[:1], 1.0 / len(pick))
    grad = to_stem(chosen, Tape(layers, tape.features), slope, activation, None, product)
    grad = product(grad, params["stem.weight"][:, -act_dim:].transpose(1, 2))[0]
    return torch.empty_like(grad).index_copy(0, order, grad)
