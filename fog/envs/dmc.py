"""The DeepMind Control suite: observations in one vector, no termination, 1000 steps."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fog.envs.importing import import_suite, quiet
from fog.envs.simulator import Float32Array, FloatArray, check_action_bounds, unbounded, unknown_id

_FRAME = 480


class DmcSimulator:
    """A dm_control environment."""

    def __init__(self, env: Any, name: str, max_steps: int | None) -> None:
        """Take a dm_control environment built without time limit."""
        action_spec = env.action_spec()
        check_action_bounds(name, action_spec.minimum, action_spec.maximum)
        self._env = env
        self._parts: list[tuple[str, slice, bool]] = []
        size = 0
        for key, spec in env.observation_spec().items():
            count = int(np.prod(spec.shape, dtype=int))
            self._parts.append((key, slice(size, size + count), len(spec.shape) > 1))
            size += count
        self.observation_space = unbounded(size)
        self._size = size
        self.action_low, self.action_high = action_spec.minimum, action_spec.maximum
        self.max_steps = max_steps
        self.render_fps = round(1 / env.control_timestep())
        self._renderer: Any = None

    def reset(self, seed: int) -> tuple[Float32Array, dict[str, Any]]:
        """Start the episode of `seed`."""
        self._env.task.random.seed(seed)
        return self._flatten(self._env.reset().observation), {}

    def step(self, action: FloatArray) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        """One control step; a task ends an episode early only by a discount of 0."""
        timestep = self._env.step(action)
        over = timestep.last()
        terminated = bool(over and timestep.discount == 0)
        observation = self._flatten(timestep.observation)
        return observation, float(timestep.reward), terminated, bool(over and not terminated), {}

    def never_terminate(self) -> None:
        """Take away the task's own end, after which dm_control would start a new episode."""
        self._env.task.get_termination = lambda physics: None

    def _flatten(self, observation: dict[str, Any]) -> Float32Array:
        flat = np.empty(self._size, np.float32)
        for key, part, is_matrix in self._parts:
            value = observation[key]
            flat[part] = value.ravel() if is_matrix else value
        return flat

    def render(self) -> NDArray[np.uint8]:
        """The current frame from the task's first camera.

        Drawn by Gymnasium's renderer: dm_control's own settles on GLFW when it is imported, even
        where there is no display.
        """
        if self._renderer is None:
            from gymnasium.envs.mujoco.mujoco_rendering import MujocoRenderer

            physics = self._env.physics
            model, data = physics.model.ptr, physics.data.ptr
            camera = 0 if model.ncam else -1
            model.vis.global_.offwidth = max(model.vis.global_.offwidth, _FRAME)
            model.vis.global_.offheight = max(model.vis.global_.offheight, _FRAME)
            self._renderer = MujocoRenderer(
                model, data, width=_FRAME, height=_FRAME, camera_id=camera
            )
        return cast("NDArray[np.uint8]", self._renderer.render("rgb_array"))

    def close(self) -> None:
        """Free the physics and the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        self._env.close()


class _NumpyWithIn1d:
    """numpy as the quadruped's module of dm_control 1.0.28 knows it; 2.4 has dropped `in1d`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, "isin" if name == "in1d" else name)


def build(env_id: str, render_mode: str | None) -> DmcSimulator:
    """The simulator of `domain-task`, such as `cartpole-swingup`."""
    del render_mode  # Rendering is set up at the first frame.
    with quiet():
        suite = import_suite("dm_control.suite", "pip install dm_control")
        names = {
            f"{domain}-{task}".replace("_", "-"): (domain, task) for domain, task in suite.ALL_TASKS
        }
        key = env_id.replace("_", "-")
        if key not in names:
            raise unknown_id("dmc", env_id, names, "cheetah-run")
        domain, task = names[key]
        if domain == "quadruped" and not hasattr(np, "in1d"):
            suite.quadruped.np = _NumpyWithIn1d()
        # The random state given here is replaced by every reset; without one, numpy would ask the
        # operating system for entropy.
        env = suite.load(domain, task, task_kwargs={"time_limit": float("inf"), "random": 0})
        return DmcSimulator(env, f"dmc:{key}", max_steps=None)
