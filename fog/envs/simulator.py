"""What the common environment needs from a suite, and the errors all suites share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from fog.errors import UserError

FloatArray = NDArray[np.floating[Any]]
Float32Array = NDArray[np.float32]

_UNBOUNDED = 1e9
"""MuJoCo writes 1e10 for an actuator without limits; no real control range comes near it."""


class Simulator(Protocol):
    """One task of one suite in its own units: native action bounds, no time limit of ours.

    Observations are new arrays on every call, for the replay buffer to keep.
    """

    observation_space: spaces.Box[np.float32]
    action_low: FloatArray
    action_high: FloatArray
    max_steps: int | None
    """The suite's own time limit in steps, in force where the task names none."""
    render_fps: int

    def reset(self, seed: int) -> tuple[Float32Array, dict[str, Any]]:
        """Start the episode of `seed`, whatever happened before."""

    def step(self, action: FloatArray) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        """One step of the suite: observation, reward, terminated, truncated, info."""

    def never_terminate(self) -> None:
        """Continue where the suite would end an episode; called before the first reset.

        `step` may still return `terminated` if the suite has no such mode; it is then ignored.
        """

    def render(self) -> NDArray[np.uint8]:
        """The current frame, height x width x 3."""

    def close(self) -> None:
        """Free what the suite holds; may be called twice."""


def unbounded(size: int) -> spaces.Box[np.float32]:
    """An unbounded space of `size` numbers, for suites that give no bounds."""
    return spaces.Box(-np.inf, np.inf, (size,), np.float32)


def unknown_id(prefix: str, env_id: str, known: Iterable[str], example: str) -> UserError:
    """The error for an id that the suite does not have, with the nearest one that it has."""
    near = difflib.get_close_matches(env_id, list(known), n=1, cutoff=0.5)
    hint = f"did you mean {prefix}:{near[0]}?" if near else f"for example {prefix}:{example}"
    return UserError(f"unknown task {prefix}:{env_id}: {hint}")


def check_action_bounds(name: str, low: FloatArray, high: FloatArray) -> None:
    """Refuse a task whose actions cannot be rescaled from [-1, 1]."""
    if not (np.all(np.abs(low) < _UNBOUNDED) and np.all(np.abs(high) < _UNBOUNDED)):
        raise UserError(f"task {name} has unbounded actions; [-1, 1] cannot be rescaled to them")
