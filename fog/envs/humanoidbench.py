"""HumanoidBench from its own package, on a newer MuJoCo than the one it pins."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, cast

import gymnasium
import numpy as np
from numpy.typing import NDArray

from fog.envs import detect
from fog.envs.gym import GymSimulator, make_bare
from fog.envs.importing import import_suite, quiet
from fog.envs.simulator import Float32Array
from fog.errors import UserError


class HumanoidBenchSimulator(GymSimulator):
    """A HumanoidBench environment; some tasks place things with numpy's global generator."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        """Take an environment fresh from its constructor."""
        super().__init__(env, prefix="hb")
        self._bare = cast(Any, env.unwrapped)

    def reset(self, seed: int) -> tuple[Float32Array, dict[str, Any]]:
        """Start the episode of `seed`."""
        with _global_generator(seed):
            return super().reset(seed)

    def render(self) -> NDArray[np.uint8]:
        """The current frame; the package's own `render` calls an older Gymnasium."""
        return cast("NDArray[np.uint8]", self._bare.mujoco_renderer.render("rgb_array"))


def build(env_id: str, render_mode: str | None) -> HumanoidBenchSimulator:
    """The simulator of a HumanoidBench id such as `h1-walk-v0`.

    By default the package opens a renderer with every environment, and so would need OpenGL even
    to train. Built without a render mode it does not, and can still draw later.
    """
    del render_mode
    with quiet():
        _import_humanoid_bench()
        with _global_generator(0):
            env = make_bare(env_id, "hb", "h1-walk-v0", render_mode=None)
        return HumanoidBenchSimulator(env)


def _import_humanoid_bench() -> None:
    """Import the package with the array sizes of the installed MuJoCo.

    HumanoidBench carries a table of MuJoCo 3.1.6's array sizes, which newer versions do not match.
    dm_control generates the same table for the MuJoCo that is installed.
    """
    status = detect.humanoidbench()
    if not status.available:
        raise UserError(f"HumanoidBench cannot be used: {status.detail}")
    sizes = import_suite("dm_control.mujoco.wrapper.mjbindings.sizes", "pip install dm_control")
    sys.modules.setdefault("humanoid_bench.dmc_deps.dmc_sizes", sizes)
    import_suite("humanoid_bench", detect.HUMANOIDBENCH_INSTALL)


@contextlib.contextmanager
def _global_generator(seed: int) -> Iterator[None]:
    """Seed numpy's global generator and restore it: HumanoidBench uses no other."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
