"""Replay speed and memory beside Stable-Baselines3, cpprb and numpy's choice.

    python benchmarks/replay.py [--sizes 10000 100000 1000000] [--rounds 40] [--json out.json]

Contenders take turns within every round, so that a busy machine slows all of them alike; a ratio is
the median over rounds of the two times of the same round. Peers that are not installed are reported
as missing. They are wanted for this benchmark only: use an environment of its own, with torch
installed first so that nothing replaces it (torch==2.13.0, then stable-baselines3 and cpprb).
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fog.replay import SAMPLERS, Replay, make_sampler
from fog.seeding import generator

OBS_DIM, ACT_DIM, BATCH = 67, 21, 256
EPISODE = 1000
MEMORY_CONTENDERS = ("fog", "SB3 ReplayBuffer", "cpprb ReplayBuffer")

Call = Callable[[], object]


def build(name: str, size: int) -> Replay:
    """An empty replay with the paper's settings."""
    sampler = make_sampler(
        name, capacity=size, rng=generator(0, "replay"), epsilon=1e-5, tau=0.1, quota=BATCH * 10
    )
    return Replay(OBS_DIM, ACT_DIM, size, sampler=sampler)


def fill(replay: Replay, size: int) -> None:
    """Add `size` transitions in episodes of 1,000 steps."""
    rng = np.random.default_rng(0)
    pool = rng.standard_normal((1024, OBS_DIM), dtype=np.float32)
    action = rng.standard_normal(ACT_DIM, dtype=np.float32)
    for step in range(size):
        if step % EPISODE == 0:
            replay.begin_episode(pool[step % 1024])
        end = step % EPISODE == EPISODE - 1
        replay.add(action, 1.0, pool[(step + 1) % 1024], False, end)


def ours(size: int) -> dict[str, Call]:
    """One call per sampler; the four replays share the stored transitions, which they only read."""
    calls: dict[str, Call] = {}
    first: Replay | None = None
    for name in SAMPLERS:
        replay = build(name, size)
        if first is None:
            fill(replay, size)
            first = replay
        else:
            replay._storage = first._storage
            replay._counts.reserve(size)
            for i in range(size):
                replay.sampler.add(i)
        calls[f"fog {name}"] = _per_call(replay) if name == "per" else _call(replay)
        if name in ("uniform", "decay"):
            calls[f"fog {name}, 10 batches"] = _call(replay, 10)
    return calls


def _call(replay: Replay, batches: int = 1) -> Call:
    return lambda: replay.sample(BATCH, batches)


def _per_call(replay: Replay) -> Call:
    errors = np.random.default_rng(1).exponential(size=(1, BATCH))

    def call() -> None:
        _, ids = replay.sample(BATCH)
        replay.update_priorities(ids, errors)

    return call


def sb3_buffer(size: int) -> Any:
    """A full Stable-Baselines3 buffer."""
    from gymnasium.spaces import Box
    from stable_baselines3.common.buffers import ReplayBuffer

    observations = Box(-1, 1, (OBS_DIM,), np.float32)
    buffer = ReplayBuffer(size, observations, Box(-1, 1, (ACT_DIM,), np.float32), device="cpu")
    for array in (buffer.observations, buffer.next_observations, buffer.actions):
        array[:] = 1.0
    for array in (buffer.rewards, buffer.dones, buffer.timeouts):
        array[:] = 0.0
    buffer.full = True
    return buffer


def cpprb_buffer(size: int, prioritised: bool = False) -> Any:
    """A full cpprb buffer, each observation stored twice as cpprb does by default."""
    from cpprb import PrioritizedReplayBuffer, ReplayBuffer

    columns = {
        "obs": {"shape": OBS_DIM},
        "act": {"shape": ACT_DIM},
        "rew": {},
        "next_obs": {"shape": OBS_DIM},
        "done": {},
    }
    buffer = (PrioritizedReplayBuffer if prioritised else ReplayBuffer)(size, columns)
    for start in range(0, size, 10_000):
        n = min(10_000, size - start)
        ones = {name: np.ones((n, column.get("shape", 1))) for name, column in columns.items()}
        buffer.add(**ones)
    return buffer


def peers(size: int) -> dict[str, Call]:
    """One call per peer that is installed."""
    calls: dict[str, Call] = {}
    if importlib.util.find_spec("stable_baselines3"):
        sb3 = sb3_buffer(size)
        calls["SB3 ReplayBuffer"] = lambda: sb3.sample(BATCH)
    if importlib.util.find_spec("cpprb"):
        plain, prioritised = cpprb_buffer(size), cpprb_buffer(size, prioritised=True)
        errors = np.random.default_rng(1).exponential(size=BATCH)

        def sample_and_update() -> None:
            drawn = prioritised.sample(BATCH, 0.4)
            prioritised.update_priorities(drawn["indexes"], errors)

        calls["cpprb ReplayBuffer"] = lambda: plain.sample(BATCH)
        calls["cpprb PrioritizedReplayBuffer"] = sample_and_update
    return calls


def drawing(size: int) -> dict[str, Call]:
    """Index drawing alone."""
    sampler = make_sampler("decay", capacity=size, rng=generator(0, "replay"), epsilon=1e-5, tau=0.1)
    law = sampler.probabilities(0, size)
    rng = np.random.default_rng(0)
    return {
        "decay, ids only": lambda: sampler.draw(1, BATCH, 0, size),
        "numpy choice(p), ids only": lambda: rng.choice(size, BATCH, p=law),
    }


def interleave(calls: dict[str, Call], rounds: int, target: float) -> dict[str, list[float]]:
    """Microseconds per call, one value per contender and round.

    Args:
        calls: The contenders.
        rounds: How often each has its turn.
        target: Seconds a turn should take.
    """
    repeats = {}
    for name, call in calls.items():
        for _ in range(3):
            call()
        start = time.perf_counter()
        for _ in range(5):
            call()
        repeats[name] = max(3, int(5 * target / (time.perf_counter() - start)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    gc.disable()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            times[name].append((time.perf_counter() - start) / repeats[name] * 1e6)
    gc.enable()
    return times


def ratio(times: dict[str, list[float]], a: str, b: str) -> float | None:
    """Median over rounds of a's time over b's, or None if either is missing."""
    if a not in times or b not in times:
        return None
    return float(np.median(np.array(times[a]) / np.array(times[b])))


def resident(contender: str, size: int) -> float | None:
    """Megabytes that a full buffer adds to a fresh process, or None if it cannot be built."""
    command = [sys.executable, __file__, "--measure-memory", contender, "--sizes", str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def measure_memory(contender: str, size: int) -> float:
    """Fill one buffer here and report how much this process has grown."""
    if contender == "fog":
        fill(build("decay", 100), 100)
    else:
        (sb3_buffer if "SB3" in contender else cpprb_buffer)(100)
    before = _resident_bytes()
    if contender == "fog":
        kept: Any = build("decay", size)
        fill(kept, size)
    else:
        kept = (sb3_buffer if "SB3" in contender else cpprb_buffer)(size)
    return (_resident_bytes() - before) / 1e6


def _resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def requirements(
    small: dict[str, list[float]], large: dict[str, list[float]], memory: dict[str, float | None]
) -> list[tuple[str, float | None, str, bool | None]]:
    """What the replay must reach, what it reached, and whether that is enough."""
    growth = float(np.median(np.array(large["fog decay"]) / np.array(small["fog decay"])))
    ours_mb, sb3_mb = memory.get("fog"), memory.get("SB3 ReplayBuffer")
    rows: list[tuple[str, float | None, str, float]] = [
        ("decay / uniform", ratio(large, "fog decay", "fog uniform"), "<=", 1.3),
        ("decay, largest / smallest buffer", growth, "<=", 1.2),
        (
            "numpy choice(p) / decay, ids only",
            ratio(large, "numpy choice(p), ids only", "decay, ids only"),
            ">=",
            500.0,
        ),
        ("uniform / cpprb", ratio(large, "fog uniform", "cpprb ReplayBuffer"), "<=", 1.0),
        ("SB3 / uniform", ratio(large, "SB3 ReplayBuffer", "fog uniform"), ">=", 2.0),
        ("per / cpprb", ratio(large, "fog per", "cpprb PrioritizedReplayBuffer"), "<=", 1.0),
        ("memory / SB3", ours_mb / sb3_mb if ours_mb and sb3_mb else None, "<=", 0.65),
    ]
    return [
        (
            name,
            value,
            f"{sign} {limit:g}",
            None if value is None else value <= limit if sign == "<=" else value >= limit,
        )
        for name, value, sign, limit in rows
    ]


def report(
    times: dict[int, dict[str, list[float]]], memory: dict[str, float | None]
) -> tuple[str, dict[str, Any]]:
    """The Markdown tables and the same as plain data."""
    sizes = sorted(times)
    names = list(times[sizes[-1]])
    lines = [
        f"Microseconds per call, batch of {BATCH} (obs {OBS_DIM}, act {ACT_DIM}), median:",
        "",
        "| | " + " | ".join(f"{size:,}" for size in sizes) + " |",
        "|---|" + "---:|" * len(sizes),
    ]
    medians = {
        name: {str(size): float(np.median(times[size][name])) for size in sizes} for name in names
    }
    lines += [
        f"| {name} | " + " | ".join(f"{value:,.1f}" for value in row.values()) + " |"
        for name, row in medians.items()
    ]
    lines += ["", f"Resident memory of a full buffer of {sizes[-1]:,}:", "", "| | MB |", "|---|---:|"]
    lines += [
        f"| {name} | {'missing' if mb is None else f'{mb:,.0f}'} |" for name, mb in memory.items()
    ]
    checks = requirements(times[sizes[0]], times[sizes[-1]], memory)
    lines += ["", "| ratio (largest buffer) | measured | required | |", "|---|---:|---:|---|"]
    words = {None: "peer missing", True: "met", False: "NOT MET"}
    lines += [
        f"| {name} | {'-' if value is None else f'{value:.2f}'} | {limit} | {words[met]} |"
        for name, value, limit, met in checks
    ]
    data = {
        "microseconds": medians,
        "memory_mb": memory,
        "requirements": [dict(zip(("name", "value", "limit", "met"), c, strict=True)) for c in checks],
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": torch.__version__,
        },
    }
    return "\n".join(lines), data


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--turn", type=float, default=0.02, help="seconds per contender and round")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--measure-memory", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if options.measure_memory:
        print(measure_memory(options.measure_memory, options.sizes[0]))
        return
    # All sizes take turns too, for one requirement compares the smallest with the largest.
    calls: dict[tuple[int, str], Call] = {}
    for size in sorted(options.sizes):
        for name, call in {**ours(size), **peers(size), **drawing(size)}.items():
            calls[size, name] = call
    flat = {f"{size}|{name}": call for (size, name), call in calls.items()}
    measured = interleave(flat, options.rounds, options.turn)
    times: dict[int, dict[str, list[float]]] = {size: {} for size in sorted(options.sizes)}
    for size, name in calls:
        times[size][name] = measured[f"{size}|{name}"]
    memory = {name: resident(name, max(options.sizes)) for name in MEMORY_CONTENDERS}
    text, data = report(times, memory)
    for package in ("stable_baselines3", "cpprb"):
        if not importlib.util.find_spec(package):
            text += f"\n\n{package} is not installed: its rows are missing."
    print(text)
    if options.json:
        options.json.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
