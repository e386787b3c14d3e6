"""Every task behind one Gymnasium interface.

    env = fog.envs.make("humanoid-walk", seed=0)

Observations are flat float32 vectors, actions live in [-1, 1], episode k of a seed is always the
same episode. The suites are imported when a task of theirs is made, not before.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol

from fog.envs.detect import SuiteStatus, gl_backends, suites
from fog.errors import UserError
from fog.settings import tasks

if TYPE_CHECKING:
    from fog.envs.simulator import Simulator
    from fog.envs.task_env import TaskEnv

__all__ = ["SuiteStatus", "gl_backends", "make", "suites"]

_ADAPTERS: dict[tasks.Suite, str] = {
    "mujoco": "fog.envs.gym",
    "gym": "fog.envs.gym",
    "dmc": "fog.envs.dmc",
    "metaworld": "fog.envs.metaworld",
    "humanoidbench": "fog.envs.humanoidbench",
}


class _Adapter(Protocol):
    """What each suite's module offers."""

    def build(self, env_id: str, render_mode: str | None) -> Simulator: ...


def make(
    task: str | tasks.Task, seed: int, *, stream: str = "env", render_mode: str | None = None
) -> TaskEnv:
    """Make the environment of a task: a name as in `fog tasks`, an escape, or a `Task`.

    Episode k of the result, counted by its resets from 0, starts from a seed derived from (`seed`,
    `stream`, k) alone: it is the same in every process and whatever ran before it.
    `env.reset(options={"episode": k})` goes to episode k directly. The stream is "env" to train,
    another one to evaluate; `render_mode` is None, or "rgb_array", which needs OpenGL.
    """
    if render_mode not in (None, "rgb_array"):
        raise UserError(f"render_mode {render_mode!r} is not supported: use None or 'rgb_array'")
    if isinstance(task, str):
        task = tasks.get(task)
    if render_mode is not None:
        from fog.envs import gl

        gl.require_backend()
    if task.suite != "gym":
        from fog.envs.importing import import_suite

        import_suite("mujoco", "pip install mujoco")
    adapter: _Adapter = importlib.import_module(_ADAPTERS[task.suite])
    from fog.envs.task_env import TaskEnv

    return TaskEnv(task, adapter.build(task.env_id, render_mode), seed, stream, render_mode)
