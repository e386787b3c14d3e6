"""Replay speed and memory beside Stable-Baselines3, cpprb and numpy's choice.

    python benchmarks/replay.py [--sizes 10000 100000 1000000] [--rounds 60] [--turn 0.01]

Contenders take turns in a new order in every round, with an update's worth of products before every
turn. Turns of 10 ms measure the code; `--turn 0`, one call a turn, measures a draw as training has
it, with nothing of it left in the cache. Processor time is measured, not wall time, so that a busy
machine disturbs little; a ratio is the median over rounds of the two times of the same round.
Peers that are not installed are reported as missing. They are wanted for this benchmark only: use
an environment of its own, with torch installed first so that nothing replaces it (torch==2.13.0,
then stable-baselines3 and cpprb).
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from replay_contenders import (
    ACT_DIM,
    BATCH,
    OBS_DIM,
    Call,
    drawing,
    measure_memory,
    ours,
    peers,
)

Times = dict[str, list[float]]

MEMORY_CONTENDERS = ("fog", "SB3 ReplayBuffer", "cpprb ReplayBuffer")


def interleave(calls: dict[str, Call], rounds: int, turn: float) -> Times:
    """Microseconds per call, one value per contender and round.

    Contenders have their turns in a new order in every round, and before each turn an update's
    worth of products runs, untimed, so that nobody profits from what the one before left in the
    cache.

    Args:
        calls: The contenders.
        rounds: How often each has its turn.
        turn: Seconds a turn should take; 0 is a single call.
    """
    repeats = {}
    for name, call in calls.items():
        for _ in range(3):
            call()
        start = time.process_time()
        for _ in range(5):
            call()
        repeats[name] = max(1, int(5 * turn / (time.process_time() - start)))
    times: Times = {name: [] for name in calls}
    order = np.random.default_rng(0)
    gc.disable()
    for _ in range(rounds):
        for name in order.permutation(list(calls)):
            call = calls[name]
            update()
            start = time.process_time()
            for _ in range(repeats[name]):
                call()
            times[name].append((time.process_time() - start) / repeats[name] * 1e6)
    gc.enable()
    return times


_WEIGHTS = torch.full((24, 256, 256), 1e-3)
_ACTIVATIONS = torch.ones(256, 256)


def update() -> torch.Tensor:
    """Products of about one SAC update at width 256, with 6 MB of weights."""
    return _ACTIVATIONS @ _WEIGHTS


def ratio(times: Times, a: str, b: str) -> float | None:
    """Median over rounds of a's time over b's, or None if either is missing."""
    if a not in times or b not in times:
        return None
    return float(np.median(np.array(times[a]) / np.array(times[b])))


def resident(contender: str, size: int) -> float | None:
    """Megabytes that a full buffer adds to a fresh process, or None if it cannot be built."""
    command = [sys.executable, __file__, "--measure-memory", contender, "--sizes", str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def requirements(
    small: Times, large: Times, memory: dict[str, float | None]
) -> list[tuple[str, float | None, str, bool | None]]:
    """What the replay must reach, what it reached, and whether that is enough."""

    def growth(name: str) -> float | None:
        if name not in small:
            return None
        return float(np.median(np.array(large[name]) / np.array(small[name])))

    ours_mb, sb3_mb = memory.get("fog"), memory.get("SB3 ReplayBuffer")
    rows: list[tuple[str, float | None, str, float]] = [
        ("decay / uniform", ratio(large, "fog decay", "fog uniform"), "<=", 1.3),
        ("decay, ids only, largest / smallest buffer", growth("decay, ids only"), "<=", 1.2),
        ("decay, whole batch, largest / smallest buffer", growth("fog decay"), "<=", 1.2),
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
    for peer in ("fog uniform", "cpprb ReplayBuffer", "SB3 ReplayBuffer"):
        rows.append((f"{peer}, whole batch, largest / smallest buffer", growth(peer), "", np.nan))
    return [
        (
            name,
            value,
            f"{sign} {limit:g}" if sign else "for comparison",
            None if value is None else _met(value, sign, limit),
        )
        for name, value, sign, limit in rows
    ]


def _met(value: float, sign: str, limit: float) -> bool:
    return not sign or (value <= limit if sign == "<=" else value >= limit)


def report(times: dict[int, Times], memory: dict[str, float | None]) -> tuple[str, dict[str, Any]]:
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
    lines += [
        "",
        f"Resident memory of a full buffer of {sizes[-1]:,}:",
        "",
        "| | MB |",
        "|---|---:|",
    ]
    lines += [
        f"| {name} | {'missing' if mb is None else f'{mb:,.0f}'} |" for name, mb in memory.items()
    ]
    checks = requirements(times[sizes[0]], times[sizes[-1]], memory)
    lines += ["", "| ratio (largest buffer) | measured | required | |", "|---|---:|---:|---|"]
    words = {None: "peer missing", True: "met", False: "NOT MET"}
    for name, value, limit, met in checks:
        word = "" if limit == "for comparison" and met else words[met]
        lines.append(f"| {name} | {'-' if value is None else f'{value:.2f}'} | {limit} | {word} |")
    data = {
        "microseconds": medians,
        "memory_mb": memory,
        "requirements": [
            dict(zip(("name", "value", "limit", "met"), c, strict=True)) for c in checks
        ],
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
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument(
        "--turn", type=float, default=0.01, help="seconds per turn; 0: one call between updates"
    )
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
    times: dict[int, Times] = {size: {} for size in sorted(options.sizes)}
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
