"""What probes cost: the whole-buffer loss against its bare matrix products, and shares of training.

    python benchmarks/probes.py products [--rows 1000000] [--variant sac] [--width 256]
    python benchmarks/probes.py share    [--variant fog] [--width 64] [--scale 0.02]
    python benchmarks/probes.py paper    [--variant fog] [--rows 20000] [--named curvature]

`products` measures the critic-loss probe, rounds alternating with nothing but the matrix products
of the same shapes, and the memory that it and the sample-counts probe add. `share` trains the same
run with and without all probes, stretches alternating, and also reports the share from the seconds
that the trainer logs for each probe, as it is and at the paper's cadence. `paper` takes apart one
window of the paper, 100,000 steps with a million updates, which no CPU trains in a benchmark: the
time of an update and of each measurement of each probe at full network size, times how often each
happens; what goes over the whole buffer is measured on `--rows` transitions and multiplied.
Everything runs on one thread and is measured in processor time, so that other work on the machine
counts little.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import fog
import fog.probing.observed
from diagnostics.probes.critic_loss import CriticLoss
from diagnostics.probes.sample_counts import SampleCounts
from fog import seeding
from fog.agent import Agent, build_agent
from fog.events import Episode, Probe, Update
from fog.probing import dispatch, registry
from fog.probing.dispatch import Counters, Probes
from fog.probing.observed import ObservedFogAgent, facts_of
from fog.records.run_directory import RunDirectory
from fog.replay import Replay, make_sampler
from fog.settings.config import Config
from fog.training.console import Reporter
from fog.training.device import prepare
from fog.training.trainer import Trainer

OBS, ACT = 24, 6
PAPER = ("critic_loss", "dormancy", "sample_counts", "features")


def filled_replay(rows: int) -> Replay:
    """A replay of random transitions, filled by columns because adding a million takes minutes."""
    sampler = make_sampler("uniform", capacity=rows, rng=seeding.generator(0, "replay"))
    replay = Replay(OBS, ACT, rows, sampler=sampler)
    rng, store = np.random.default_rng(0), replay._storage
    store.obs[:] = rng.standard_normal(store.obs.shape, dtype=np.float32)
    store.action[:] = rng.uniform(-1, 1, store.action.shape)
    store.reward[:] = rng.standard_normal(store.reward.shape)
    store.end[:] = -1
    store.size = store.added = rows
    replay._counts.reserve(rows)
    return replay


def bare_products(agent: Agent, rows: int) -> Callable[[], None]:
    """The matrix products of `transition_losses` on one chunk, and nothing else."""
    spec, depth, width = agent.spec, agent.depth, agent.spec.width
    ensemble = spec.ensemble
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    def critic(members: int, inputs: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        hidden = spec.dense_layers(depth) - 2
        shapes = [(inputs, width), *[(width, width)] * hidden, (width, 1)]
        return [(random(members, rows, k), random(members, k, n)) for k, n in shapes]

    # Critics and their targets, V twice (s and s'), and the actor once, for the next action.
    pairs = critic(ensemble, OBS + ACT) + critic(ensemble, OBS + ACT)
    if spec.offline:
        pairs += critic(1, OBS) + critic(1, OBS)
    for k, n in ((OBS, width), (width, width), (width, 2 * ACT)):
        pairs.append((random(1, rows, k), random(1, k, n)))

    def multiply() -> None:
        for left, right in pairs:
            torch.bmm(left, right)

    return multiply


def memory_added(call: Callable[[], object]) -> float:
    """By how many MB resident memory exceeds its level before the call, at the peak within it.

    The system's high-water mark still holds what was freed long before, so it is reset first.
    """
    Path("/proc/self/clear_refs").write_text("5")
    before = _resident("VmRSS")
    call()
    return _resident("VmHWM") - before


def _resident(field: str) -> float:
    """VmRSS (now) or VmHWM (the high-water mark) of this process in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":"))


def products(arguments: argparse.Namespace) -> None:
    """The whole probe, table included, against bare matrix products of the same shapes."""
    settings: dict[str, Any] = {"width": arguments.width} if arguments.width else {}
    config = fog.resolve("cartpole-swingup", arguments.variant, **settings)
    agent = build_agent(config, OBS, ACT, "cpu", arguments.compile == "on")
    replay, observed = filled_replay(arguments.rows), ObservedFogAgent(agent)
    # A short benchmark of a wide network must take the path that a full buffer takes.
    fog.probing.observed._WORTH_COMPILING = 0
    chunk, losses = observed.bulk_losses(arguments.rows)
    ids, batch = next(replay.chunks(chunk))
    began = time.process_time()
    losses(batch, torch.randn(len(ids), ACT))
    print(f"first chunk of {chunk} (compiles if compiled): {time.process_time() - began:.1f} s")
    multiply = bare_products(agent, chunk)
    pieces = -(-arguments.rows // chunk)
    ratios = []
    with tempfile.TemporaryDirectory() as home:
        progress = Counters(arguments.rows)
        facts = facts_of(config)
        probes = Probes([CriticLoss()], facts, progress, observed, replay, Path(home))
        added = 0.0
        for turn in range(arguments.rounds):
            began = time.process_time()
            for _ in range(pieces):
                multiply()
            bare = time.process_time() - began
            began = time.process_time()
            added = max(added, memory_added(probes.window))
            probe = time.process_time() - began
            ratios.append(probe / bare)
            print(f"round {turn}: products {bare:.1f} s, probe {probe:.1f} s, {ratios[-1]:.2f}")
        counts = Probes([SampleCounts()], facts, progress, observed, replay, Path(home))
        began = time.process_time()
        counts_added = memory_added(counts.window)
        counting = time.process_time() - began
    print(
        f"{arguments.variant} width {agent.spec.width} depth {agent.depth} rows {arguments.rows} "
        f"compiled {arguments.compile}: ratio {statistics.median(ratios):.2f} (limit 1.5), "
        f"peak memory added {added:.0f} MB (limit 300)"
    )
    print(
        f"sample_counts rows {arguments.rows}: {counting:.2f} s, peak memory added "
        f"{counts_added:.0f} MB (limit 300)"
    )


def share(arguments: argparse.Namespace) -> None:
    """Two equal runs in turns, one with probes; the first stretch compiles and does not count.

    Critics stay at one depth, so that nothing compiles later. The window at the end of a short run
    comes more often than in a whole one: the share is too large rather than too small.
    """
    # The probes' own clocks must tell the same time as ours.
    vars(dispatch)["time"] = SimpleNamespace(perf_counter=time.process_time)
    with tempfile.TemporaryDirectory() as home:
        paper = fog.resolve(arguments.task, arguments.variant, arguments.scale)
        first = paper.run.warmup_steps + 2 * paper.run.window_steps // 20
        steps = first + arguments.steps
        base = paper.replace(
            width=arguments.width or 64,
            steps=steps,
            compile=arguments.compile,
            expansion_updates=(),
            tensorboard=False,
            eval_every=steps,
            eval_episodes=1,
        )
        names = PAPER if arguments.probes == "paper" else tuple(registry.usual())
        runs = [_trainer(base, home, "bare", ()), _trainer(base, home, "probed", names)]
        spent = runs[1].probes.seconds
        seconds = np.zeros((2, 20))
        for trainer in runs:
            _train(trainer, first)
        spent.update(dict.fromkeys(spent, 0.0))
        for stretch, end in enumerate(np.linspace(first, steps, 21).astype(int)[1:]):
            for k, trainer in enumerate(runs):
                seconds[k, stretch] = _train(trainer, int(end))
    bare, probed = seconds.sum(axis=1)
    total = sum(spent.values())
    print(
        f"{arguments.variant} width {base.network.width} scale {arguments.scale} replay ratio "
        f"{base.agent.replay_ratio:g}: {arguments.steps} steps, "
        f"{1000 * bare / arguments.steps / base.agent.replay_ratio:.2f} ms per update"
    )
    print(f"without {bare:.1f} s, with {probed:.1f} s: {probed / bare - 1:+.2%}")
    print(f"by the probes' own clocks: {total:.2f} s, {total / (probed - total):.2%}")
    _shares(spent, probed - total)
    # Whole-buffer passes grow with the buffer; samples stay as large and come more rarely.
    rarer = base.run.window_steps / fog.resolve(arguments.task, arguments.variant).run.window_steps
    whole = ("critic_loss", "sample_counts")
    print(f"at the paper's cadence (samples {1 / rarer:g} times rarer):")
    at_scale = {name: s * (1.0 if name in whole else rarer) for name, s in spent.items()}
    _shares(at_scale, probed - total)


def paper(arguments: argparse.Namespace) -> None:
    """Every probe in one of the paper's windows, from parts measured in turns."""
    settings: dict[str, Any] = {"width": arguments.width} if arguments.width else {}
    config = fog.resolve("humanoid-walk", arguments.variant, **settings)
    agent = build_agent(config, OBS, ACT, "cpu", False)
    replay, progress = filled_replay(arguments.rows), Counters()
    # As many windows in the rows that are there as in the paper's buffer.
    facts = replace(
        facts_of(config),
        window_steps=arguments.rows * config.run.window_steps // config.replay.capacity,
    )
    made = {probe.name: probe for probe in registry.load([*registry.usual(), *arguments.named])}
    parts = {
        (name, hook): often
        for name, probe in made.items()
        for hook, often in _often(probe, config, config.replay.capacity / arguments.rows).items()
    }
    per_step = int(config.agent.replay_ratio)
    spent: dict[tuple[str, str], list[float]] = {part: [] for part in parts}
    updates: list[float] = []
    episodes = _episodes(config.run.eval_episodes)
    with tempfile.TemporaryDirectory() as home:
        each = {
            name: Probes([probe], facts, progress, ObservedFogAgent(agent), replay, Path(home))
            for name, probe in made.items()
        }
        for probes in each.values():
            probes.start()
        for turn in range(1, arguments.rounds + 1):
            progress.env_step = turn * config.run.steps // 5
            batch, ids = replay.sample(config.agent.batch_size, per_step)
            updates.append(_seconds(lambda: agent.update(batch)) / per_step)  # noqa: B023
            arguments_of = {"update": (Update(ids, {}),), "window": (), "evaluation": (episodes,)}
            for name, hook in parts:
                call = getattr(each[name], hook)
                seconds = _seconds(lambda: call(*arguments_of[hook]))  # noqa: B023
                spent[name, hook].append(seconds)
    window = statistics.median(updates) * config.run.window_steps * per_step
    print(
        f"{arguments.variant} width {agent.spec.width} depth {agent.depth}: "
        f"{1000 * statistics.median(updates):.0f} ms per update, {window / 3600:.1f} h per window"
    )
    total = dict.fromkeys(made, 0.0)
    for (name, hook), times in parts.items():
        total[name] += statistics.median(spent[name, hook]) * times
    _shares(total, window)


def _often(probe: Probe, config: Config, full: float) -> dict[str, float]:
    """How often a window calls the hooks in which a probe measures, as multiples of one call here.

    At the window's end, 20 times a window, at each evaluation; what goes over the whole buffer
    counts `full` times, because the buffer of the benchmark is so much smaller.
    """
    run = config.run
    usual: dict[str, float] = {
        "update": 20,
        "window": full if probe.name in ("critic_loss", "sample_counts") else 1,
        "evaluation": run.window_steps / run.eval_every,
    }
    if probe.name == "dormancy":
        usual["update"] += 6  # before and after two expansions and a reset
    if probe.name == "features":
        usual["update"] = 0.5  # every second window
    if probe.name == "sample_counts":
        usual["update"] = run.window_steps
    return {
        hook: often
        for hook, often in usual.items()
        if getattr(type(probe), f"on_{hook}") is not getattr(Probe, f"on_{hook}")
    }


def _episodes(count: int, length: int = 1000) -> list[Episode]:
    rng = np.random.default_rng(0)
    return [
        Episode(
            rng.standard_normal((length + 1, OBS), dtype=np.float32),
            rng.uniform(-1, 1, (length, ACT)).astype(np.float32),
            rng.standard_normal(length, dtype=np.float32),
            False,
        )
        for _ in range(count)
    ]


def _seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def _shares(spent: dict[str, float], training: float) -> None:
    """Each probe's share of training, and the two sums that have limits."""
    for name, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"  {name:16s} {seconds:9.3f} s {seconds / training:8.3%}")
    usual = sum(spent.get(name, 0.0) for name in registry.usual())
    four = sum(spent.get(name, 0.0) for name in PAPER)
    print(f"the paper's four: {four / training:.2%} of training (limit 1 %)")
    print(f"all but the optional: {usual / training:.2%} of training (limit 8 %)")


def _train(trainer: Trainer, end: int) -> float:
    began = time.process_time()
    while trainer.progress.env_step < end:
        trainer._step()
    return time.process_time() - began


def _trainer(base: Config, home: str, name: str, probes: tuple[str, ...]) -> Trainer:
    config = base.replace(out=f"{home}/{name}", probes=probes)
    trainer = Trainer(config, RunDirectory.create(config), Reporter())
    trainer.start()
    trainer.probes.start()
    return trainer


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=["products", "share", "paper"])
    parser.add_argument("--rows", type=int, default=None, help="[1000000; paper: 20000]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--variant", default="sac")
    parser.add_argument("--task", default="cartpole-swingup")
    parser.add_argument("--width", type=int, default=None)
    parser.add_argument("--scale", type=float, default=0.02)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--probes", choices=["paper", "all"], default="all")
    parser.add_argument("--named", nargs="*", default=[], help="optional probes for `paper` too")
    parser.add_argument("--compile", choices=["on", "off"], default="on")
    arguments = parser.parse_args()
    if arguments.rows is None:
        arguments.rows = 20_000 if arguments.what == "paper" else 1_000_000
    prepare(1)
    {"products": products, "share": share, "paper": paper}[arguments.what](arguments)


if __name__ == "__main__":
    main()
