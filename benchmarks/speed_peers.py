"""Stable-Baselines3 and SBX in the speed benchmark: their SAC, as a user would build it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from speed_workers import BATCH, TOGETHER, Channel, Contender, Work, calls, serve

FloatArray = NDArray[np.float32]


class Dummy(gym.Env[FloatArray, FloatArray]):
    """An environment of given dimensions that never ends and costs nothing."""

    def __init__(self, obs: int, act: int) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (obs,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (act,), np.float32)
        self._rng = np.random.default_rng(0)
        self._obs = obs

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """A random observation."""
        return self._observe(), {}

    def step(self, action: FloatArray) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """Another one."""
        return self._observe(), 1.0, False, False, {}

    def _observe(self) -> FloatArray:
        return self._rng.standard_normal(self._obs, dtype=np.float32)


def run(contender: Contender, channel: Channel) -> None:
    """Serve turns until the parent has enough."""
    torch.set_num_threads(contender.threads)
    library = "stable_baselines3" if contender.kind == "sb3" else "sbx"
    build = importlib.import_module(library).SAC
    wait = _jax_wait if library == "sbx" else _no_wait
    made = steps if contender.kind.endswith("-steps") else updates
    serve(channel, made(contender, build, wait))


def updates(contender: Contender, build: Any, wait: Callable[[Any], None]) -> Work:
    """Ten gradient steps a call, from a full buffer."""
    model = build(
        "MlpPolicy",
        Dummy(contender.obs, contender.act),
        policy_kwargs={"net_arch": [contender.width, contender.width]},
        batch_size=contender.batch,
        buffer_size=contender.rows,
        device="cpu",
        seed=0,
    )
    # Gives the model its logger, which `train` writes to.
    model.learn(1)
    _fill(model.replay_buffer)

    def work(amount: int) -> None:
        for _ in calls(amount):
            model.train(gradient_steps=TOGETHER, batch_size=contender.batch)
            wait(model)

    return work


def steps(contender: Contender, build: Any, wait: Callable[[Any], None]) -> Work:
    """Environment steps of `learn` on HalfCheetah-v4."""
    model = build(
        "MlpPolicy",
        gym.make("HalfCheetah-v4"),
        policy_kwargs={"net_arch": [contender.width, contender.width]},
        batch_size=BATCH,
        learning_starts=1_000,
        train_freq=1,
        gradient_steps=contender.ratio,
        device="cpu",
        seed=0,
    )

    def work(amount: int) -> None:
        model.learn(amount, reset_num_timesteps=False)
        wait(model)

    work(1_000)
    return work


def _fill(buffer: Any) -> None:
    rng = np.random.default_rng(0)
    for name in ("observations", "next_observations", "rewards"):
        array = getattr(buffer, name)
        array[:] = rng.standard_normal(array.shape, dtype=np.float32)
    buffer.actions[:] = rng.uniform(-1, 1, buffer.actions.shape)
    buffer.full = True


def _jax_wait(model: Any) -> None:
    """JAX answers before it has computed."""
    policy = model.policy
    importlib.import_module("jax").block_until_ready(
        (policy.actor_state.params, policy.qf_state.params, policy.qf_state.target_params)
    )


def _no_wait(model: Any) -> None:
    """Torch on the CPU has computed when it answers."""
