"""Our contenders of the speed benchmark: updates, bare products of the same shapes, and steps."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from speed_workers import TOGETHER, Channel, Contender, Work, calls, serve
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import fog
from fog.agent import Agent, build_agent
from fog.fast import FastHyperparameters
from fog.records.run_directory import RunDirectory
from fog.replay import Batch, Replay, make_sampler
from fog.seeding import generator
from fog.settings.config import Config
from fog.training.console import Reporter
from fog.training.device import keep_memory
from fog.training.trainer import Trainer

PLAIN: dict[str, Any] = {
    "critic_layer_norm": False,
    "actor_layer_norm": False,
}
"""SAC as the peers build it: two hidden layers, ReLU, no LayerNorm."""


def run(contender: Contender, channel: Channel) -> None:
    """Serve turns until the parent has enough."""
    torch.set_num_threads(contender.threads)
    keep_memory()
    match contender.kind:
        case "fog":
            serve(channel, updates(contender))
        case "products":
            work, flops = bare_products(contender)
            serve(channel, work, {"flops": flops})
        case "kernels":
            serve(channel, bare_kernels(contender))
        case "fog-steps":
            with tempfile.TemporaryDirectory() as home:
                serve(channel, steps(contender, home))


def updates(contender: Contender) -> Work:
    """Updates as training makes them: drawn ten batches at a time, and looked at for divergence."""
    agent, replay = newborn(contender, contender.compiled), filled_replay(contender)

    def work(amount: int) -> None:
        for _ in calls(amount):
            batch, _ = replay.sample(contender.batch, TOGETHER)
            if not agent.update(batch).finite:
                raise FloatingPointError("the agent diverged")

    return work


def config_of(contender: Contender, task: str = "gym:Pendulum-v1", **settings: Any) -> Config:
    """The contender as a run; growing critics are grown by hand."""
    common = {"width": contender.width, "batch_size": contender.batch, **settings}
    if contender.variant == "plain":
        return fog.resolve(task, "sac", **PLAIN, **common)
    born = min(contender.depth, fog.resolve(task, contender.variant).network.initial_depth)
    return fog.resolve(
        task,
        contender.variant,
        initial_depth=born,
        maximal_depth=contender.depth,
        expansion_updates=(),
        **common,
    )


def newborn(contender: Contender, compiled: bool) -> Agent:
    """The agent at the depth asked for."""
    agent = build_agent(config_of(contender), contender.obs, contender.act, "cpu", compiled)
    while agent.depth < contender.depth:
        agent.expand()
    return agent


def filled_replay(contender: Contender) -> Replay:
    """A full buffer of random transitions, filled by columns: adding a million takes minutes."""
    rows, settings = contender.rows, config_of(contender).replay
    sampler = make_sampler(
        settings.sampler,
        capacity=rows,
        rng=generator(0, "replay"),
        epsilon=settings.epsilon,
        tau=settings.tau,
    )
    replay = Replay(contender.obs, contender.act, rows, sampler=sampler)
    rng, store = np.random.default_rng(0), replay._storage
    store.obs[:] = rng.standard_normal(store.obs.shape, dtype=np.float32)
    store.action[:] = rng.uniform(-1, 1, store.action.shape)
    store.reward[:] = rng.standard_normal(store.reward.shape)
    store.end[:] = -1
    store.size = store.added = rows
    replay._counts.reserve(rows)
    return replay


# Bare products

_ADDED = {torch.ops.aten.addmm.default, torch.ops.aten.baddbmm.default}
_BARE = {torch.ops.aten.mm.default, torch.ops.aten.bmm.default}


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records every operation of some kinds with its arguments and result, in order.

    Recorded and not written down, so that the list is that of the update as it is now, with its
    shapes, strides and shared memory.
    """

    def __init__(self, wanted: Callable[[Any], bool]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[tuple[Any, tuple[Any, ...], Any]] = []
        self._wanted = wanted

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Let the operation pass, and keep it if it is wanted."""
        result = func(*args, **(kwargs or {}))
        if self._wanted(func):
            self.found.append((func, args, result))
        return result


def bare_products(contender: Contender) -> tuple[Work, int]:
    """The products of one update and nothing else, and their FLOPs.

    Raises:
        AssertionError: torch's own counter finds other products in the update than we do.
    """
    agent, batch = newborn(contender, compiled=False), _one_batch(contender)
    # The compiled update's products, by torch's operations.
    compiled = newborn(contender, compiled=True).hyper
    assert isinstance(compiled, FastHyperparameters)
    agent.hyper = replace(compiled, native=False)
    with Recorder(lambda func: func in _ADDED or func in _BARE) as recorded:
        agent.update(batch)
    products = [
        (*(args[1:3] if func in _ADDED else args[:2]), result)
        for func, args, result in recorded.found
    ]
    with FlopCounterMode(display=False) as counter:
        agent.update(batch)
    flops = sum(2 * left.numel() * right.shape[-1] for left, right, _ in products)
    counted = counter.get_total_flops()
    if flops != counted:
        raise AssertionError(f"{flops} FLOPs in the list of products, {counted} in the update")

    def multiply(amount: int) -> None:
        for _ in range(amount):
            # Written where the update wrote it, so that the next product finds it in the cache too.
            for left, right, out in products:
                (torch.bmm if left.dim() == 3 else torch.mm)(left, right, out=out)

    return multiply, flops


def bare_kernels(contender: Contender) -> Work:
    """The calls of our kernels that one update makes, and nothing else."""
    agent, batch = newborn(contender, compiled=False), _one_batch(contender)
    agent.hyper = newborn(contender, compiled=True).hyper
    with Recorder(lambda func: func.namespace == "fog") as recorded:
        agent.update(batch)
    if not recorded.found:
        raise RuntimeError("our kernels cannot be built here")

    def multiply(amount: int) -> None:
        for _ in range(amount):
            for kernel, arguments, _ in recorded.found:
                kernel(*arguments)

    return multiply


def _one_batch(contender: Contender) -> Batch:
    batch, _ = filled_replay(contender).sample(contender.batch)
    return batch


# End to end


def steps(contender: Contender, home: str) -> Work:
    """Environment steps of a real run: acting, simulating, storing, updating and its log."""
    never = 10**9
    config = config_of(
        contender,
        "HalfCheetah-v4",
        replay_ratio=float(contender.ratio),
        steps=never,
        warmup_steps=1_000,
        eval_every=never,
        window_steps=never,
        reset_steps=(),
        probes=(),
        tensorboard=False,
        threads=contender.threads,
        compile="on" if contender.compiled else "off",
        out=home,
    )
    trainer = Trainer(config, RunDirectory.create(config), Reporter())
    trainer.start()
    trainer.probes.start()

    def work(amount: int) -> None:
        for _ in range(amount):
            trainer._step()

    work(1_000)
    return work
