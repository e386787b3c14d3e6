"""Gymnasium: the MuJoCo v4 tasks of the paper, and any id with flat Box spaces."""

from __future__ import annotations

import importlib
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from fog.envs.importing import quiet
from fog.envs.simulator import Float32Array, FloatArray, check_action_bounds, unknown_id
from fog.errors import UserError


class GymSimulator:
    """A Gymnasium environment without the checks and limits that `gymnasium.make` adds."""

    def __init__(self, env: gymnasium.Env[Any, Any], prefix: str = "gym") -> None:
        """Take `env`, made without time limit, if its spaces fit."""
        spec = env.spec
        if spec is None:
            raise ValueError("the environment was not made by gymnasium.make")
        name = f"{prefix}:{spec.id}"
        _check_spaces(name, env.observation_space, env.action_space)
        action_space = cast(spaces.Box, env.action_space)
        self.action_low = action_space.low.astype(np.float32)
        self.action_high = action_space.high.astype(np.float32)
        check_action_bounds(name, self.action_low, self.action_high)
        self.env = env
        observed = cast(spaces.Box, env.observation_space)
        self.observation_space = spaces.Box(
            observed.low.astype(np.float32), observed.high.astype(np.float32), dtype=np.float32
        )
        self.max_steps = gymnasium.registry[spec.id].max_episode_steps
        self.render_fps = int(env.metadata.get("render_fps", 30))

    def reset(self, seed: int) -> tuple[Float32Array, dict[str, Any]]:
        """Start the episode of `seed`."""
        observation, info = self.env.reset(seed=seed)
        return observation.astype(np.float32), info

    def step(self, action: FloatArray) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        """One Gymnasium step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        flat = observation.astype(np.float32)
        return flat, float(reward), bool(terminated), bool(truncated), info

    def never_terminate(self) -> None:
        """Use the MuJoCo tasks' own switch.

        While it is on, v4 pays the healthy reward in any state, since an unhealthy robot ends the
        episode. When it is off, a robot on its back does not get that reward.
        """
        bare = cast(Any, self.env.unwrapped)
        if hasattr(bare, "_terminate_when_unhealthy"):
            bare._terminate_when_unhealthy = False

    def render(self) -> NDArray[np.uint8]:
        """The current frame."""
        return cast("NDArray[np.uint8]", self.env.render())

    def close(self) -> None:
        """Close the Gymnasium environment."""
        self.env.close()


def build(env_id: str, render_mode: str | None) -> GymSimulator:
    """The simulator of a Gymnasium id; `module:id` imports the module first."""
    module, _, env_id = env_id.rpartition(":")
    with quiet():
        if module:
            try:
                if not all(part.isidentifier() for part in module.split(".")):
                    raise ImportError("not a module name")
                importlib.import_module(module)
            except ImportError as error:
                raise UserError(
                    f"gym:{module}:{env_id}: cannot import {module} ({error})"
                ) from None
        # Not every environment knows the option, so it is given only where it is needed.
        options = {} if render_mode is None else {"render_mode": render_mode}
        return GymSimulator(make_bare(env_id, "gym", "Pendulum-v1", **options))


def make_bare(env_id: str, prefix: str, example: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """`gymnasium.make` without the wrappers that cost time on every step."""
    try:
        env = gymnasium.make(env_id, max_episode_steps=-1, disable_env_checker=True, **options)
    except gymnasium.error.UnregisteredEnv:
        raise unknown_id(prefix, env_id, gymnasium.registry, example) from None
    except gymnasium.error.DependencyNotInstalled as error:
        raise UserError(f"{prefix}:{env_id} needs a package: {_one_line(error)}") from None
    except gymnasium.error.Error as error:
        raise UserError(f"{prefix}:{env_id} cannot be made: {_one_line(error)}") from None
    if isinstance(env, gymnasium.wrappers.OrderEnforcing):
        return env.env
    return env


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _check_spaces(name: str, observation: spaces.Space[Any], action: spaces.Space[Any]) -> None:
    if not isinstance(action, spaces.Box):
        raise UserError(
            f"task {name} has the action space {action}; only Box actions can be trained"
        )
    if action.shape is None or len(action.shape) != 1:
        raise UserError(f"task {name} has actions of shape {action.shape}; only vectors work")
    if not isinstance(observation, spaces.Box):
        raise UserError(f"task {name} has the observation space {observation}; only flat Box works")
    if observation.shape is None or len(observation.shape) != 1:
        raise UserError(
            f"task {name} has observations of shape {observation.shape}; only vectors can be used"
        )
