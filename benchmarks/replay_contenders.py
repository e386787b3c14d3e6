"""The contenders of the replay benchmark: our samplers and their peers, each with a full buffer."""

from __future__ import annotations

import gc
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fog.replay import SAMPLERS, Replay, make_sampler
from fog.seeding import generator

OBS_DIM, ACT_DIM, BATCH = 67, 21, 256
EPISODE = 1000

Call = Callable[[], object]


def build(name: str, size: int) -> Replay:
    """An empty replay with the paper's settings: epsilon is 1e-5 at a million transitions.

    The decay rate scales with the size, so that decayed part and floor keep their shares.
    """
    sampler = make_sampler(
        name,
        capacity=size,
        rng=generator(0, "replay"),
        epsilon=10.0 / size,
        tau=0.1,
        quota=BATCH,
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
    sampler = build("decay", size).sampler
    law = sampler.probabilities(0, size)
    rng = np.random.default_rng(0)
    return {
        "decay, ids only": lambda: sampler.draw(1, BATCH, 0, size),
        "numpy choice(p), ids only": lambda: rng.choice(size, BATCH, p=law),
    }


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
