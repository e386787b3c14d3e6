"""Timing what a run repeats, on this machine: `python -m fog.cost.measure REQUEST RESULT`.

Runs as a separate process, so that its imports and allocations can be measured too and none of them
stay with the caller. Both arguments are JSON files; `fog.cost.calibration` writes the first and
reads the second. Where one thread does all the work, its processor time is measured, so that other
work on the machine counts little.
"""

from __future__ import annotations

import functools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import flatdim

import fog.training.run  # noqa: F401 - for its weight: start-up time and memory are those of a run
from fog import envs
from fog.agent import Agent, build_agent
from fog.cost.peak import peak_bytes
from fog.envs.task_env import TaskEnv
from fog.errors import UserError
from fog.records import checkpoint
from fog.replay import Replay, make_sampler
from fog.settings.config import Config
from fog.training.device import device_of, prepare

_SECONDS = 0.5
"""Spent on each repeated thing, after one call that is not counted."""
_FEWEST = 3
_STORED = 5_000
"""Transitions in the replay that batches are drawn from."""


def main(request: Path, result: Path) -> None:
    """Measure what `request` names and write it to `result`."""
    found: dict[str, Any] = {"start": time.process_time(), "bytes": peak_bytes()}
    wanted = json.loads(request.read_text())
    if "tasks" in wanted:
        found["tasks"] = _tasks(wanted["tasks"], wanted["seconds"])
    if "agents" in wanted:
        found["agents"] = [_agent(**point) for point in wanted["agents"]]
        found["samplers"] = [_sampler(**point) for point in wanted["samplers"]]
        found["checkpoint"] = _checkpoint()
    result.write_text(json.dumps(found))


def _tasks(names: list[str], seconds: float) -> dict[str, Any]:
    """Simulators of one suite, as many as are installed and fit into `seconds`.

    The first environment of a suite also imports it, so each task is made twice, as a run does, and
    the difference is the import.
    """
    found: dict[str, Any] = {}
    ends = time.perf_counter() + seconds
    kept = []
    for name in names:
        if found and time.perf_counter() > ends:
            break
        spent, grown = [], []
        # Nothing made here is freed, so that a higher peak means more memory in use.
        try:
            for stream in ("env", "eval"):
                before, began = peak_bytes(), time.process_time()
                kept.append(envs.make(name, 0, stream=stream))
                kept[-1].reset()
                spent.append(time.process_time() - began)
                grown.append(peak_bytes() - before)
        except UserError:
            continue
        env = kept[-1]
        first = not found
        found[name] = {
            "obs_dim": flatdim(env.observation_space),
            "act_dim": flatdim(env.action_space),
            "episode_length": env.episode_length,
            "make": 2 * spent[1] if first else sum(spent),
            "bytes": max(0, 2 * grown[1] if first else sum(grown)),
            "import": max(0.0, spent[0] - spent[1]) if first else 0.0,
            "import_bytes": max(0, grown[0] - grown[1]) if first else 0,
            "step": _steps(env),
        }
    return found


def _steps(env: TaskEnv) -> float:
    """Seconds of a step with a random action; resets do not count."""
    rng = np.random.default_rng(0)
    spent: list[float] = []
    ends = time.perf_counter() + _SECONDS / 2
    while len(spent) < 20 or time.perf_counter() < ends:
        action = rng.uniform(-1.0, 1.0, env.action_space.shape).astype(np.float32)
        began = time.process_time()
        _, _, terminated, truncated, _ = env.step(action)
        spent.append(time.process_time() - began)
        if terminated or truncated:
            env.reset()
    # The mean: steps with contacts are expensive, and they are part of the run.
    return statistics.fmean(spent)


def _agent(settings: dict[str, Any], obs_dim: int, act_dim: int, depth: int) -> dict[str, float]:
    """An uncompiled update with critics of `depth`, and choosing an action."""
    config = Config.from_flat(settings)
    prepare(config.runtime.threads)
    agent = build_agent(config, obs_dim, act_dim, device_of(config), compiled=False)
    while agent.depth < depth:
        agent.expand()
    replay = _replay(config, obs_dim, act_dim, "uniform")
    batch, _ = replay.sample(config.agent.batch_size)
    obs, rng = np.zeros(obs_dim, np.float32), np.random.default_rng(0)
    alone = device_of(config).type == "cpu" and config.runtime.threads == 1
    clock = time.process_time if alone else time.perf_counter
    return {
        "update": _median(lambda: _update(agent, batch), clock),
        "act": _median(lambda: agent.act(obs, rng=rng), clock, seconds=0.1),
    }


def _update(agent: Agent, batch: Any) -> None:
    # Reading a result waits for the device, as the trainer does.
    stats = agent.update(batch)
    assert stats.finite and stats.metrics


def _sampler(settings: dict[str, Any], obs_dim: int, act_dim: int) -> float:
    """Drawing the batch of one update and giving the errors back."""
    config = Config.from_flat(settings)
    replay = _replay(config, obs_dim, act_dim, config.replay.sampler)
    size = config.agent.batch_size
    errors = np.ones((1, size), np.float32)

    def draw() -> None:
        _, ids = replay.sample(size)
        replay.update_priorities(ids, errors)

    return _median(draw, time.process_time, seconds=0.2)


def _replay(config: Config, obs_dim: int, act_dim: int, name: str) -> Replay:
    settings, capacity = config.replay, config.replay.capacity
    sampler = make_sampler(name, capacity=capacity, rng=np.random.default_rng(0), tau=settings.tau)
    replay = Replay(obs_dim, act_dim, capacity, sampler=sampler, device=device_of(config))
    rng = np.random.default_rng(0)
    replay.begin_episode(rng.standard_normal(obs_dim))
    for _ in range(min(_STORED, capacity)):
        replay.add(rng.uniform(-1, 1, act_dim), 0.0, rng.standard_normal(obs_dim), False, False)
    return replay


def _checkpoint() -> dict[str, float]:
    """Seconds of writing a checkpoint: the fixed part, and that of each byte."""
    files, small, large = 8, 1_000, 2_000_000

    def write(root: Path, size: int) -> None:
        def fill(home: Path) -> None:
            for k in range(files):
                (home / f"{k}.npy").write_bytes(bytes(size))

        checkpoint.write(root, 0, fill)

    with tempfile.TemporaryDirectory() as home:
        # The disk works too, so this is time on the wall.
        fixed, more = (
            _median(functools.partial(write, Path(home), size), time.perf_counter, 0.1)
            for size in (small, large)
        )
    return {"fixed": fixed, "byte": max(0.0, more - fixed) / (files * (large - small))}


def _median(
    call: Callable[[], object], clock: Callable[[], float], seconds: float = _SECONDS
) -> float:
    call()
    spent: list[float] = []
    ends = time.perf_counter() + seconds
    while len(spent) < _FEWEST or time.perf_counter() < ends:
        began = clock()
        call()
        spent.append(clock() - began)
    return statistics.median(spent)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
