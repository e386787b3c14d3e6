"""Meta-World v3, with the goal in the observation and a new goal in every episode."""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from fog.envs.importing import import_suite, quiet
from fog.envs.simulator import Float32Array, FloatArray, unbounded, unknown_id


class MetaWorldSimulator:
    """One Sawyer task.

    Meta-World ignores `reset(seed=)` and draws positions from numpy's global generator. Its
    `seeded_rand_vec` switch makes it draw from the environment's own generator instead, which is
    reseeded for every episode.
    """

    def __init__(self, env: Any) -> None:
        """Take a Sawyer environment fresh from its constructor."""
        # What Meta-World's own goal-observable classes set, without the draw from the global
        # generator in their constructor. The cached space still has the goal hidden.
        env._partially_observable = False
        del env.sawyer_observation_space
        env._set_task_called = True
        env._freeze_rand_vec = False
        env.seeded_rand_vec = True
        self.max_steps: int | None = env.max_path_length
        env.max_path_length = sys.maxsize
        self._env = env
        self.observation_space = unbounded(env.sawyer_observation_space.shape[0])
        self.action_low, self.action_high = env.action_space.low, env.action_space.high
        self.render_fps = int(env.metadata["render_fps"])

    def reset(self, seed: int) -> tuple[Float32Array, dict[str, Any]]:
        """Start the episode of `seed`, with its own goal and object positions."""
        self._env.np_random, _ = seeding.np_random(seed)
        observation, info = self._env.reset()
        return observation.astype(np.float32), info

    def step(self, action: FloatArray) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        """One step; Meta-World never terminates."""
        observation, reward, _, _, info = self._env.step(action)
        return observation.astype(np.float32), float(reward), False, False, info

    def never_terminate(self) -> None:
        """Nothing to do: it never does."""

    def render(self) -> NDArray[np.uint8]:
        """The current frame, rotated because the camera is upside down."""
        return cast("NDArray[np.uint8]", self._env.render()[::-1, ::-1].copy())

    def close(self) -> None:
        """Close the Sawyer environment."""
        self._env.close()


def build(env_id: str, render_mode: str | None) -> MetaWorldSimulator:
    """The simulator of a task name such as `assembly`, with or without `-v3`."""
    with quiet():
        tasks = import_suite("metaworld.env_dict", "pip install metaworld").ALL_V3_ENVIRONMENTS
        names = {name.removesuffix("-v3"): cls for name, cls in tasks.items()}
        key = env_id.removesuffix("-v3")
        if key not in names:
            raise unknown_id("mw", env_id, names, "reach")
        env = names[key](
            render_mode=render_mode, camera_name="corner2", reward_function_version="v2"
        )
        return MetaWorldSimulator(env)
