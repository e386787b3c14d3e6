"""Rollouts shared by the environment tests."""

from __future__ import annotations

import numpy as np
import pytest

from fog.envs import detect
from fog.envs.task_env import TaskEnv
from fog.settings import tasks

AVAILABLE = {status.suite: status for status in detect.suites()}

# One task of each suite; h1-reach places its goal with numpy's global generator.
ONE_OF_EACH = ("HalfCheetah-v4", "cartpole-swingup", "mw-assembly", "h1-reach")


def task_param(name: str, *marks: pytest.MarkDecorator) -> object:
    """The task as a test parameter, skipped with the reason where its suite is not installed."""
    status = AVAILABLE[tasks.registry()[name].suite]
    skip = pytest.mark.skipif(not status.available, reason=status.detail)
    return pytest.param(name, marks=(skip, *marks))


def installed(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if AVAILABLE[tasks.registry()[name].suite].available]


def rollout(env: TaskEnv, episode: int, steps: int = 50) -> np.ndarray:
    """Everything an episode shows, observations and rewards, as one float64 vector."""
    observation, _ = env.reset(options={"episode": episode})
    seen = [observation.astype(np.float64)]
    for action in actions(env, episode, steps):
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append(np.append(observation.astype(np.float64), reward))
        if terminated or truncated:
            break
    return np.concatenate(seen)


def actions(env: TaskEnv, seed: int, steps: int) -> np.ndarray:
    shape = (steps, *env.action_space.shape)
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
