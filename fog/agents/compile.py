"""The update, eager or compiled: one compiled function per depth, kept for the process's life."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from fog.agents.rule import Rule
from fog.agents.spec import NetworkSpec
from fog.agents.state import State, flatten
from fog.agents.update import update_
from fog.replay.batch import Batch

UpdateFunction: TypeAlias = Callable[[State, Batch, Tensor, Tensor, Rule], tuple[Tensor, Tensor]]


def update_function(
    spec: NetworkSpec,
    rule: Rule,
    depth: int,
    batch_size: int,
    device: torch.device,
    compiled: bool,
) -> UpdateFunction:
    """`update_` itself, or its compiled form for networks of this depth.

    A reset returns to the initial depth and finds its function again; another run of the same
    shape in the same process does too. Compiling happens at the first call.
    """
    if not compiled:
        return update_
    return _compiled(spec, rule, depth, batch_size, device.type)


@functools.cache
def _compiled(
    spec: NetworkSpec, rule: Rule, depth: int, batch_size: int, device: str
) -> UpdateFunction:
    # The compiler counts recompilations per code object and refuses after a few. A copy of the
    # code for every set of shapes and constants gives each its own account.
    copy = types.FunctionType(update_.__code__.replace(), update_.__globals__, "update_")
    if device == "cuda":
        return _graphed(torch.compile(copy, fullgraph=True, dynamic=False, mode="reduce-overhead"))
    return torch.compile(copy, fullgraph=True, dynamic=False, options={"cpp_wrapper": True})


def _graphed(function: UpdateFunction) -> UpdateFunction:
    """For CUDA graphs: results live in the graph's memory, which the next replay overwrites."""

    def call(
        state: State, batch: Batch, noise: Tensor, bc_active: Tensor, rule: Rule
    ) -> tuple[Tensor, Tensor]:
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        metrics, td_error = function(state, batch, noise, bc_active, rule)
        return metrics.clone(), td_error.clone()

    return call


def mark_static(state: State) -> None:
    """Tell CUDA graphs that the state stays where it is, so that it may be written in place."""
    for _, tensor in flatten(state):
        if tensor.is_cuda:
            torch._dynamo.mark_static_address(tensor, guard=False)
