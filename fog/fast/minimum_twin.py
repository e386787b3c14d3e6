"""The action gradient of min(Q1, Q2), going back through each row's smaller twin only.

The minimum passes no gradient to the larger twin, so half of the rows of a full backward pass are
zero. Here every row goes back through its own twin: elementwise by choosing what that twin has, and
in products by `products.back_one_twin`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fog.fast.backward import Dense, Style, Tape, through_elu, to_stem
from fog.fast.products import back_one_twin, chosen_rows
from fog.networks.layers import Params

PAYS_FROM = 256
"""Width from which it saves time with torch's products; with our kernels it costs none at 64."""


def minimum_action_gradient(
    params: Params, tape: Tape, values: Tensor, style: Style, act_dim: int
) -> Tensor:
    """Gradient of the mean of min(Q1, Q2) in the last `act_dim` inputs, (B, act_dim).

    `values` (2, B) are what the forward pass on the tape gave; where twins tie the first is picked.
    """
    pick = values[1] < values[0]

    def of_twin(stacked: Tensor) -> Tensor:
        return chosen_rows(stacked, pick).unsqueeze(0)

    chosen = dict(params)
    layers = {}
    for key, layer in tape.layers.items():
        normal, spread = layer.normal, layer.spread
        if normal is not None and spread is not None:
            normal, spread = of_twin(normal), of_twin(spread)
            chosen[f"{key}.scale"] = of_twin(params[f"{key}.scale"])
        layers[key] = Dense(layer.inputs, normal, spread, of_twin(layer.output))
    chosen["head.weight"] = of_twin(params["head.weight"].transpose(1, 2)).transpose(1, 2)

    def back(grad: Tensor, key: str, below: str | None) -> Tensor:
        gated = below is not None and style.activation == "relu"
        gate = tape.layers[below].output if below is not None and gated else None
        grad = back_one_twin(grad[0], params[f"{key}.weight"], pick, gate, style.native).unsqueeze(
            0
        )
        return grad if below is None or gated else through_elu(grad, layers[below].output)

    slope = torch.full_like(values[:1], 1.0 / len(pick))
    grad = to_stem(chosen, Tape(layers, tape.features), slope, style, None, back)
    return back_one_twin(grad[0], params["stem.weight"][:, -act_dim:], pick, None, style.native)
