"""Looking inside torch modules through forward hooks that are removed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.utils.hooks import RemovableHandle

from fog.errors import UserError

_ACTIVATIONS = (
    nn.ReLU,
    nn.ELU,
    nn.Tanh,
    nn.GELU,
    nn.SiLU,
    nn.LeakyReLU,
    nn.Mish,
    nn.SELU,
    nn.CELU,
    nn.Softplus,
    nn.Sigmoid,
)


def require_deterministic(module: nn.Module) -> None:
    """Refuse a module whose evaluation would draw random numbers or change its buffers.

    Raises:
        UserError: dropout or batch normalisation in training mode.
    """
    for name, part in module.named_modules():
        if part.training and isinstance(part, _DropoutNd | _BatchNorm):
            raise UserError(
                f"{name} ({type(part).__name__}) is in training mode, where looking changes it: "
                "call .eval() before probes measure"
            )


def watched(module: nn.Module) -> list[str]:
    """The activation modules before the last linear layer: their outputs are hidden neurons.

    Raises:
        UserError: there is none, so what enters and leaves an activation cannot be known.
    """
    parts = list(module.named_modules())
    linear = [k for k, (_, part) in enumerate(parts) if isinstance(part, nn.Linear)]
    if not linear:
        raise UserError(f"{type(module).__name__} has no nn.Linear layer to look at")
    active = [name for name, part in parts[: linear[-1]] if isinstance(part, _ACTIVATIONS)]
    if not active:
        raise UserError(
            f"{type(module).__name__} has no activation module before its last linear layer, so "
            "its hidden neurons cannot be told: use modules such as nn.ReLU() instead of "
            "functions, or leave out the probe dormancy"
        )
    return active


class Tap:
    """Keeps every watched output, and a zero added to the activation's input for its gradient."""

    def __init__(self) -> None:
        self.outputs: dict[str, Tensor] = {}
        self.zeros: dict[str, Tensor] = {}

    def watch(self, module: nn.Module, name: str) -> Iterator[RemovableHandle]:
        """Hook the activation `module`; one that is used twice is seen twice."""

        def before(_module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            key, uses = name, 1
            while key in self.zeros:
                uses += 1
                key = f"{name}#{uses}"
            zero = torch.zeros_like(inputs[0], requires_grad=True)
            self.zeros[key] = zero
            return (inputs[0] + zero, *inputs[1:])

        def after(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
            # A copy, because the network may go on in place.
            self.outputs[next(reversed(self.zeros))] = output.detach().clone()

        yield module.register_forward_pre_hook(before)
        yield module.register_forward_hook(after)


@contextmanager
def hidden_taps(modules: Sequence[nn.Module]) -> Iterator[list[Tap]]:
    """A tap in each module while the context lasts."""
    with ExitStack() as stack:
        taps = []
        for module in modules:
            tap = Tap()
            for name in watched(module):
                for handle in tap.watch(module.get_submodule(name), name):
                    stack.callback(handle.remove)
            taps.append(tap)
        yield taps


@contextmanager
def feature_tap(module: nn.Module) -> Iterator[list[Tensor]]:
    """What the module's last linear layer is given, while the context lasts."""
    last = [part for part in module.modules() if isinstance(part, nn.Linear)][-1]
    seen: list[Tensor] = []
    handle = last.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    try:
        yield seen
    finally:
        handle.remove()
