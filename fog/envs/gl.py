"""Choosing an OpenGL backend. Training never needs one; videos do."""

from __future__ import annotations

import ctypes.util
import functools
import os
import subprocess
import sys

from fog.errors import UserError
from fog.system.children import python

BACKENDS = ("egl", "osmesa", "glfw")
DEBIAN_PACKAGES = "libegl1 libgles2 libosmesa6 libgl1-mesa-dri"
_WORKS = "works"
_LIBRARIES = {
    "egl": ("EGL", "libegl1 libgles2 libgl1-mesa-dri"),
    "osmesa": ("OSMesa", "libosmesa6"),
}

# MuJoCo's own context is set up, because a window system can hand out contexts that it cannot use.
# In a separate process, because a broken driver ends the process.
_TRIAL = """
import importlib, sys, warnings
warnings.simplefilter("ignore")
import mujoco
context = importlib.import_module("mujoco." + sys.argv[1]).GLContext(64, 64)
context.make_current()
model = mujoco.MjModel.from_xml_string("<mujoco/>")
mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
print("ready")
"""


def try_backends(timeout: float = 10.0) -> dict[str, str]:
    """Try each backend in a separate process, all at once: "works", or why not."""
    obstacles = {backend: _obstacle(backend) for backend in BACKENDS}
    trials = {name: _start_trial(name) for name, obstacle in obstacles.items() if not obstacle}
    return {
        backend: obstacle or _outcome(trials[backend], timeout)
        for backend, obstacle in obstacles.items()
    }


def _obstacle(backend: str) -> str | None:
    """A known reason to fail, said more clearly than the backend itself would."""
    if backend == "glfw":
        if sys.platform == "linux" and not (
            os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        ):
            return "no display"
        return None
    library, package = _LIBRARIES[backend]
    if sys.platform != "linux":
        return "Linux only"
    if ctypes.util.find_library(library) is None:
        return f"lib{library} is missing: on Debian, apt-get install {package}"
    return None


def _start_trial(backend: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYOPENGL_PLATFORM"}
    return subprocess.Popen(
        python("-c", _TRIAL, backend),
        env={**environment, "MUJOCO_GL": backend},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _outcome(trial: subprocess.Popen[str], timeout: float) -> str:
    try:
        output, _ = trial.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        trial.kill()
        trial.communicate()
        return f"no answer in {timeout:g} s"
    if trial.returncode == 0 and "ready" in output:
        return _WORKS
    if trial.returncode < 0:
        return f"crashed with signal {-trial.returncode}"
    # Its traceback tells a user nothing: what is missing is nearly always the driver.
    return f"no context from its driver: on Debian, apt-get install {DEBIAN_PACKAGES}"


@functools.cache
def _try_backend(backend: str) -> str:
    return _obstacle(backend) or _outcome(_start_trial(backend), timeout=10.0)


def require_backend() -> str:
    """Make sure that frames can be drawn, and return the backend.

    A value of MUJOCO_GL set by the user is left alone. If it is not set, it is set to the first
    backend that works: Gymnasium's renderer, which draws the frames of all suites, reads it at the
    first frame, so it does not matter what was imported before.
    """
    chosen = os.environ.get("MUJOCO_GL", "")
    if not chosen:
        for backend in BACKENDS:
            if _try_backend(backend) == _WORKS:
                os.environ["MUJOCO_GL"] = backend
                return backend
        raise UserError(f"rendering needs OpenGL: on Debian, apt-get install {DEBIAN_PACKAGES}")
    if chosen not in BACKENDS:
        raise UserError(
            f"MUJOCO_GL={chosen} draws nothing: unset it, or use one of {', '.join(BACKENDS)}"
        )
    outcome = _try_backend(chosen)
    if outcome != _WORKS:
        raise UserError(f"MUJOCO_GL={chosen} does not work here ({outcome}): unset it or repair it")
    return chosen
