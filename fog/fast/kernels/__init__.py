"""Our own matrix products for the CPU, as operations known to torch's compiler.

`torch.ops.fog.dense`, `.back`, `.weight_gradients` and `.back_one_twin` exist once `load` has
returned True. `fog.fast.products` calls them and says what each computes.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fog.fast.kernels.build import BuildError, library


@functools.cache
def load() -> bool:
    """Build the kernels if needed (some seconds, once per machine) and register them.

    False if they cannot be built; torch's own products are then used, and a warning says so.
    """
    try:
        # For the whole process: compiled updates call into it.
        ctypes.CDLL(str(library()), mode=ctypes.RTLD_GLOBAL)
    except (BuildError, OSError) as error:
        warnings.warn(f"fog's kernels cannot be built, torch's are used: {error}", stacklevel=2)
        return False
    for name, shapes in _SHAPES.items():
        torch.library.register_fake(f"fog::{name}", shapes)
    return True


def declarations() -> dict[torch._ops.OpOverload, list[str]]:
    """The C functions behind the operations, as torch's compiler wants them declared."""
    return {
        getattr(torch.ops.fog, name).default: [
            f"AOTITorchError aoti_torch_cpu_{name}({', '.join(arguments)})"
        ]
        for name, arguments in _ARGUMENTS.items()
    }


_TENSOR, _ADDRESS = "AtenTensorHandle", "AtenTensorHandle*"
_ARGUMENTS = {
    "dense": (_TENSOR, _TENSOR, _TENSOR, "int32_t", _ADDRESS),
    "back": (_TENSOR, _TENSOR, _ADDRESS, _ADDRESS),
    "weight_gradients": (_TENSOR, _TENSOR, _ADDRESS, _ADDRESS),
    "back_one_twin": (_TENSOR, _TENSOR, _TENSOR, _ADDRESS, _ADDRESS),
}


def _dense(inputs: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
    members, _, columns = weight.shape
    return weight.new_empty(members, inputs.shape[-2], columns)


def _back(gradient: Tensor, weight: Tensor, gate: Tensor | None) -> Tensor:
    members, rows, _ = weight.shape
    return weight.new_empty(members, gradient.shape[-2], rows)


def _weight_gradients(inputs: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    members, _, columns = gradient.shape
    weight = gradient.new_empty(members, inputs.shape[-1], columns)
    return weight, gradient.new_empty(members, 1, columns)


def _back_one_twin(gradient: Tensor, weight: Tensor, pick: Tensor, gate: Tensor | None) -> Tensor:
    return gradient.new_empty(len(gradient), weight.shape[1])


_SHAPES: dict[str, Callable[..., Any]] = {
    "dense": _dense,
    "back": _back,
    "weight_gradients": _weight_gradients,
    "back_one_twin": _back_one_twin,
}
