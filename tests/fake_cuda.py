"""A CUDA device without one: its tensors have shapes and places, but no numbers.

Tensors on "cuda" are fake (torch's FakeTensorMode), those on the CPU are real. An operation on
tensors of two devices fails as it would on a GPU. Whatever reads from the device is written down
with the line of ours that asked for it, and gets arbitrary finite numbers.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

ROOT = Path(__file__).resolve().parent.parent
CUDA = torch.device("cuda", 0)
"""With its number, which a build of torch without CUDA cannot find out."""
READS = {
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.equal.default,
    torch.ops.aten.is_nonzero.default,
}
SHAPED_BY_DATA = {
    torch.ops.aten.nonzero.default,
    torch.ops.aten.masked_select.default,
    torch.ops.aten._unique2.default,
    torch.ops.aten.repeat_interleave.Tensor,
}


class FakeGPU(TorchDispatchMode):
    """Sends operations on CUDA tensors to fake kernels, and keeps account of reads."""

    def __init__(self, fake: FakeTensorMode) -> None:
        super().__init__()
        self.fake = fake
        self.reads: list[str] = []
        """Where the host waited for the device, as "package/module.py:function"."""
        self.operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        flat, _ = tree_flatten((args, kwargs))
        on_gpu = any(isinstance(value, FakeTensor) for value in flat)
        wanted = kwargs.get("device")
        to_gpu = wanted is not None and torch.device(wanted).type == "cuda"
        if not on_gpu and not to_gpu:
            with unset_fake_temporarily():
                return func(*args, **kwargs)
        self.operations += 1
        if func in READS:
            self.reads.append(_caller())
            return False if func is torch.ops.aten.equal.default else 0.5
        if func in SHAPED_BY_DATA or any(_is_mask(index) for index in _indices(func, args)):
            self.reads.append(_caller())
            raise AssertionError(f"{func} needs numbers of the device: {self.reads[-1]}")
        if func is torch.ops.aten._fused_adamw_.tensor_lr:
            # torch has no fake kernel for it. Its tensors must all be on the GPU.
            where = {str(value.device) for value in flat if isinstance(value, torch.Tensor)}
            if where != {str(CUDA)}:
                raise RuntimeError(f"fused Adam of tensors on different devices: {sorted(where)}")
            return None
        if "generator" in kwargs:
            kwargs["generator"] = None  # the stand-in is of the CPU
        with self.fake:
            result = func(*args, **kwargs)
        if isinstance(result, FakeTensor) and result.device.type == "cpu":
            if any(isinstance(v, FakeTensor) and v.device.type == "cuda" for v in flat):
                self.reads.append(_caller())
            return self._real(result)
        if func is torch.ops.aten.copy_.default and args[0].device.type == "cpu":
            self.reads.append(_caller())
        return result

    def _real(self, fake: FakeTensor) -> torch.Tensor:
        shape, dtype, stride = tuple(fake.shape), fake.dtype, fake.stride()
        with unset_fake_temporarily():
            g = _GENERATOR().manual_seed(len(self.reads))
            drawn = torch.rand(shape, generator=g, dtype=torch.float64) + 0.5
            return torch.empty_strided(shape, stride, dtype=dtype).copy_(drawn)


def _indices(func: Any, args: Any) -> list[Any]:
    """Tensors that an operation indexes with."""
    if func.overloadpacket.__name__ not in ("index", "index_put", "index_put_"):
        return []
    return [index for index in args[1] if index is not None]


def _is_mask(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)


def _caller() -> str:
    frame = sys._getframe(2)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        ours = path.is_relative_to(ROOT) and path.parts[len(ROOT.parts)] in ("fog", "diagnostics")
        # A comprehension is part of the function that it stands in.
        if ours and not frame.f_code.co_name.startswith("<"):
            return f"{path.relative_to(ROOT).as_posix()}:{frame.f_code.co_name}"
        frame = frame.f_back
    return "elsewhere"


_GENERATOR = torch.Generator


class _CPUGenerator(_GENERATOR):
    """In the place of a generator on the GPU, which this build of torch cannot make."""

    def __new__(cls, device: object = "cpu") -> _CPUGenerator:
        return super().__new__(cls)


GUARD = """
#include <c10/core/impl/DeviceGuardImplInterface.h>
C10_REGISTER_GUARD_IMPL(CUDA, c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA>)
"""


def pretend_cuda(folder: Path) -> None:
    """Give a build of torch without CUDA the switch between devices that indexing uses.

    For a process of its own: it cannot be undone. A build with CUDA brings the switch along.
    """
    if torch.backends.cuda.is_built():
        return
    source, library = folder / "guard.cpp", folder / "guard.so"
    source.write_text(GUARD)
    home = Path(torch.__file__).parent
    command = [os.environ.get("CXX", "g++"), "-shared", "-fPIC", "-std=c++20"]
    command += [f"-I{home / 'include'}", str(source), "-o", str(library)]
    subprocess.run([*command, f"-L{home / 'lib'}", "-lc10"], check=True)
    ctypes.CDLL(str(library))


_AUTOGRAD = torch.autograd.grad


def _gradients(outputs: Any, inputs: Any, *rest: Any, **options: Any) -> tuple[Any, ...]:
    """In the place of autograd, which will not start for a device that is not there.

    A gradient has the shape and the place of what it belongs to. That the formulas of torch's own
    derivatives keep to one device is torch's business.
    """
    leaves = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
    if not any(isinstance(leaf, FakeTensor) for leaf in leaves):
        return _AUTOGRAD(outputs, inputs, *rest, **options)
    assert all(leaf.device == CUDA and leaf.requires_grad for leaf in leaves)
    again = bool(options.get("create_graph"))
    return tuple(torch.empty_like(leaf, requires_grad=again) for leaf in leaves)


def _no_gradients(mode: bool = True) -> contextlib.AbstractContextManager[object]:
    """In the place of the inference mode, which goes past fake tensors."""
    return torch.no_grad() if mode else contextlib.nullcontext()


def _gradient_function(loss: Any) -> Any:
    def gradient(params: dict[str, torch.Tensor], *arguments: Any) -> dict[str, torch.Tensor]:
        loss(params, *arguments)
        return {name: torch.empty_like(value) for name, value in params.items()}

    return gradient


@contextlib.contextmanager
def fake_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGPU]:
    """Everything inside sees one CUDA device."""
    save, load = torch.save, torch.load

    def real(function):
        def call(*args, **kwargs):
            with unset_fake_temporarily():
                return function(*args, **kwargs)

        return call

    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with monkeypatch.context() as patch:
        # Not torch.cuda.is_available: torch's own fake mode must know that there is no GPU.
        for module in ("trainer", "checks"):
            patch.setattr(f"fog.training.{module}.device_of", lambda config: CUDA)
        patch.setattr(torch, "Generator", _CPUGenerator)
        patch.setattr(torch, "inference_mode", _no_gradients)
        patch.setattr(torch.autograd, "grad", _gradients)
        patch.setattr(torch.func, "grad", _gradient_function)
        patch.setattr(torch, "save", real(save))
        patch.setattr(torch, "load", real(load))
        with fake, FakeGPU(fake) as gpu:
            yield gpu
