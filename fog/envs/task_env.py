"""The one environment class: what every task looks like to the trainer."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from fog import seeding
from fog.envs.simulator import Float32Array, FloatArray, Simulator
from fog.errors import UserError
from fog.settings.tasks import Task


class TaskEnv(gymnasium.Env[Float32Array, Float32Array]):
    """A task with float32 observations, actions in [-1, 1] and reproducible episodes.

    One class instead of a stack of Gymnasium wrappers: rescaling, action repeat, time limit and
    seeding together cost a few microseconds per step.
    """

    def __init__(
        self, task: Task, simulator: Simulator, seed: int, stream: str, render_mode: str | None
    ) -> None:
        """Wrap `simulator`; use `fog.envs.make`, which also builds the simulator."""
        self.task = task
        self.simulator = simulator
        self.render_mode = render_mode
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": simulator.render_fps}
        low, high = simulator.action_low, simulator.action_high
        self.observation_space = simulator.observation_space
        self.action_space = spaces.Box(-1.0, 1.0, low.shape, np.float32)
        self.episode_length = task.episode_length or simulator.max_steps
        self._endless = task.termination == "never"
        if self._endless:
            if self.episode_length is None:
                raise UserError(
                    f"task {task.name} has no time limit: with termination never its episodes "
                    "would not end; use termination suite"
                )
            simulator.never_terminate()
        self._outlived = False
        self._seed = seed
        self._stream = stream
        self._next_episode = 0
        self._elapsed = 0
        self._needs_reset = True
        self._ones = np.ones(low.shape, np.float32)
        self._minus_ones = -self._ones
        # Most suites take [-1, 1] already; then an action reaches the simulator unchanged.
        self._rescales = not (np.all(low == -1.0) and np.all(high == 1.0))
        self._low, self._high = low.astype(np.float32), high.astype(np.float32)
        self._scale = ((high - low) / 2).astype(np.float32)
        self._offset = ((high + low) / 2).astype(np.float32)

    def set_episode(self, episode: int) -> None:
        """Make the next reset start episode number `episode`."""
        if episode < 0:
            raise ValueError(f"episodes count from 0, not {episode}")
        self._next_episode = episode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32Array, dict[str, Any]]:
        """Start the next episode.

        With a seed, continue as a new environment with that seed would: the next episode is its
        first. `options={"episode": k}` starts episode k instead of the next one.
        """
        if seed is not None:
            self._seed, self._next_episode = seed, 0
        if options and "episode" in options:
            self.set_episode(options["episode"])
        episode_seed = seeding.integer_seed(self._seed, self._stream, self._next_episode)
        super().reset(seed=episode_seed)
        observation, info = self.simulator.reset(episode_seed)
        self._next_episode += 1
        self._elapsed = 0
        self._needs_reset = False
        self._outlived = False
        return observation, info

    def step(self, action: ArrayLike) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        """Apply one action, clipped to [-1, 1] and repeated as the task says.

        Rewards of the repeats are summed, `info["success"]` is 1 if any of them succeeded. The
        time limit counts simulator steps and truncates; it never terminates. With the task's
        termination `never`, the simulator is stepped further where it reports the end of the
        episode.
        """
        if self._needs_reset:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset() before step()")
        control = np.asarray(action, np.float32)
        if control.shape != self._ones.shape:
            raise ValueError(f"the action's shape is {control.shape}, not {self._ones.shape}")
        control = np.minimum(np.maximum(control, self._minus_ones), self._ones)
        if self._rescales:
            # The second clip takes back the rounding of the product.
            control = control * self._scale + self._offset
            control = np.minimum(np.maximum(control, self._low), self._high)
        advance = self._step_on if self._endless else self.simulator.step
        total, succeeded = 0.0, False
        for _ in range(self.task.action_repeat):
            observation, reward, terminated, truncated, info = advance(control)
            total += reward
            self._elapsed += 1
            if self._elapsed == self.episode_length:
                truncated = True
            if "success" in info:
                succeeded = succeeded or bool(info["success"])
                info["success"] = float(succeeded)
            if terminated or truncated:
                self._needs_reset = True
                break
        return observation, total, terminated, truncated, info

    def _step_on(
        self, control: FloatArray
    ) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        """A step of the simulator that ends nothing, whatever it says."""
        try:
            observation, reward, terminated, truncated, info = self.simulator.step(control)
        except Exception as error:
            if not self._outlived:
                raise
            reason = " ".join(str(error).split())
            raise UserError(
                f"task {self.task.name} cannot be stepped after it has terminated ({reason}): use "
                "termination suite"
            ) from None
        self._outlived = self._outlived or terminated
        return observation, reward, False, truncated, info

    def render(self) -> NDArray[np.uint8]:
        """The current frame as an image; needs `render_mode="rgb_array"`."""
        if self.render_mode is None:
            raise ValueError("make the environment with render_mode='rgb_array' to render it")
        return self.simulator.render()

    def close(self) -> None:
        """Free the simulator."""
        self.simulator.close()
