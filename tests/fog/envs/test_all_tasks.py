"""Every task of the 41 that is installed here, through the one interface."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fog import envs
from fog.envs.task_env import TaskEnv
from fog.settings import tasks
from tests.fog.envs.envs_support import rollout, task_param

# Observation and action sizes, from the suites' documentation and their published wrappers.
SIZES = {
    "Ant-v4": (27, 8),
    "HalfCheetah-v4": (17, 6),
    "Humanoid-v4": (376, 17),
    "Walker2d-v4": (17, 6),
    "cartpole": (5, 1),
    "finger": (9, 2),
    "hopper": (15, 4),
    "acrobot": (6, 1),
    "humanoid": (67, 21),
    "walker": (24, 6),
    "dog": (223, 38),
    "mw": (39, 4),
    "h1": (51, 19),
    "h1-reach": (57, 19),
    "h1-balance-simple": (64, 19),
    "h1-sit-hard": (64, 19),
    "h1-balance-hard": (77, 19),
}
TERMINATING = {"Ant-v4", "Humanoid-v4", "Walker2d-v4"} | {
    name
    for name in tasks.registry()
    if name.startswith("h1-") and name not in {"h1-crawl", "h1-reach"}
}
SLOW = {name for name in tasks.registry() if name.startswith(("dog-", "humanoid-"))}


@pytest.mark.parametrize("name", [task_param(name) for name in tasks.registry()])
def test_spaces_bounds_and_reproducible_episodes(name: str) -> None:
    env, other = envs.make(name, seed=3), envs.make(name, seed=3)
    size, actions = SIZES.get(name) or SIZES[name.split("-")[0]]
    assert env.observation_space.shape == (size,)
    assert env.observation_space.dtype == np.float32
    assert env.action_space.shape == (actions,)
    assert env.action_space.dtype == np.float32
    assert np.all(env.action_space.low == -1) and np.all(env.action_space.high == 1)
    _check_fifty_steps(env)

    # The fifty steps above are a history that `other` does not have.
    fresh = rollout(other, episode=1)
    np.testing.assert_array_equal(rollout(env, episode=1), fresh)
    other_start, _ = env.reset(options={"episode": 2})
    assert not np.array_equal(other_start, fresh[:size].astype(np.float32))
    env.close()
    other.close()


def _check_fifty_steps(env: TaskEnv) -> None:
    env.action_space.seed(0)
    observation, _ = env.reset()
    previous = None
    for _ in range(50):
        assert observation in env.observation_space
        assert np.all(np.isfinite(observation))
        assert observation is not previous, "the replay buffer may keep every observation"
        previous = observation
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert type(reward) is float and np.isfinite(reward)
        assert type(terminated) is bool and type(truncated) is bool
        assert not truncated
        assert ("success" in info) == (env.task.suite == "metaworld")
        if "success" in info:
            assert info["success"] in (0.0, 1.0)
        if terminated:
            assert env.task.name in TERMINATING
            observation, _ = env.reset()


@pytest.mark.parametrize("name", [task_param(name) for name in sorted(TERMINATING)])
def test_short_limit_truncates_where_tasks_terminate(name: str) -> None:
    env = envs.make(dataclasses.replace(tasks.get(name), episode_length=3), seed=0)
    env.reset()
    flags = [env.step(np.zeros(env.action_space.shape))[2:4] for _ in range(3)]
    assert flags == [(False, False), (False, False), (False, True)]
    env.close()


@pytest.mark.parametrize(
    "name",
    [
        task_param(name, *([pytest.mark.slow] if name in SLOW else []))
        for name in tasks.registry()
        if name not in TERMINATING
    ],
)
def test_full_horizon_truncates_and_never_terminates(name: str) -> None:
    env = envs.make(name, seed=0)
    horizon = 200 if env.task.suite == "metaworld" else 1000
    env.action_space.seed(0)
    env.reset()
    for step in range(1, horizon + 1):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        assert not terminated
        assert truncated == (step == horizon)
    env.close()


@pytest.mark.parametrize("name", [task_param("Walker2d-v4"), task_param("h1-walk")])
def test_a_fall_terminates_and_does_not_truncate(name: str) -> None:
    env = envs.make(name, seed=0)
    env.action_space.seed(0)
    env.reset()
    for _ in range(999):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated:
            break
    assert terminated and not truncated
    env.close()
