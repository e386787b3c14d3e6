"""The update, eager or compiled: one compiled function per depth, kept for the process's life."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor

from fog.agent.backend import Backend
from fog.agent.compile_cache import compiled
from fog.algorithms.families import UpdateFunction
from fog.algorithms.hyperparameters import Hyperparameters
from fog.algorithms.state import flatten
from fog.records.sizes import NetworkSpec
from fog.replay.batch import Batch
from fog.system.code_cache import cache_folder

Layout: TypeAlias = tuple[tuple[int, ...], ...]
"""Strides of the tensors of a batch: those of a replay are columns of one block."""


def update_function(
    backend: Backend,
    spec: NetworkSpec,
    depth: int,
    batches: Batch,
    device: torch.device,
    compile_it: bool,
) -> UpdateFunction:
    """The backend's update, or its compiled form for this depth and one of `batches`.

    A reset returns to the initial depth and finds its function again; another run of the same
    shape in the same process does too. Compiling happens at the first call.
    """
    if not compile_it:
        return backend.update_
    layout = tuple(tensor.stride()[1:] for tensor in batches)
    return _compiled(backend, spec, depth, batches.reward.shape[1], layout, device.type)


@functools.cache
def _compiled(
    backend: Backend, spec: NetworkSpec, depth: int, batch_size: int, layout: Layout, device: str
) -> UpdateFunction:
    # The compiler counts recompilations per code object and refuses after a few. A copy of the
    # code for every set of shapes and constants gives each its own account.
    function: Any = backend.update_
    copy = types.FunctionType(function.__code__.replace(), function.__globals__, "update_")
    if device == "cuda":
        cache_folder()  # torch keeps its own there
        return _graphed(torch.compile(copy, fullgraph=True, dynamic=False, mode="reduce-overhead"))
    options = {"cpp_wrapper": True, **backend.compiler_options}
    key = repr((function.__module__, spec, backend.hyper, depth, batch_size, layout))
    return _at_first_call(lambda *arguments: compiled(copy, arguments, options, key))


def _at_first_call(make: Callable[..., UpdateFunction]) -> UpdateFunction:
    """The function that `make` makes of the arguments of the first call."""
    made: UpdateFunction | None = None

    def call(
        state: Any, batch: Batch, noise: Tensor, bc_active: Tensor, hyper: Hyperparameters
    ) -> tuple[Tensor, Tensor]:
        nonlocal made
        if made is None:
            made = make(state, batch, noise, bc_active, hyper)
        return made(state, batch, noise, bc_active, hyper)

    return call


def _graphed(function: UpdateFunction) -> UpdateFunction:
    """For CUDA graphs: results live in the graph's memory, which the next replay overwrites."""

    def call(
        state: Any, batch: Batch, noise: Tensor, bc_active: Tensor, hyper: Hyperparameters
    ) -> tuple[Tensor, Tensor]:
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        metrics, td_error = function(state, batch, noise, bc_active, hyper)
        return metrics.clone(), td_error.clone()

    return call


def mark_static(state: Any) -> None:
    """Tell CUDA graphs that the state stays where it is, so that it may be written in place."""
    for _, tensor in flatten(state):
        if tensor.is_cuda:
            torch._dynamo.mark_static_address(tensor, guard=False)
