"""What a torch module's last layer is given, and whether looking at it is safe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from fog.errors import UserError


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
