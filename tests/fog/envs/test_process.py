"""What only a process of its own can show: silence, machines without OpenGL, equal numbers."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from fog import envs
from fog.envs import detect
from tests.fog.envs.envs_support import ONE_OF_EACH, installed, rollout

# Prints nothing by itself: whatever reaches the terminal is noise.
ROLLOUTS = """
import json, sys
import numpy as np
from fog import envs

def rollout(name):
    env = envs.make(name, seed=9)
    for episode in (0, 1):
        observation, _ = env.reset()
        shape = (20, *env.action_space.shape)
        seen = [observation.astype(np.float64)]
        for action in np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32):
            observation, reward, *_ = env.step(action)
            seen.append(np.append(observation.astype(np.float64), reward))
    env.close()
    return np.concatenate(seen).tolist()

with open(sys.argv[1], "w") as file:
    json.dump({name: rollout(name) for name in sys.argv[2:]}, file)
"""

FRAMES = """
import sys
from fog import envs
for name in sys.argv[1:]:
    env = envs.make(name, seed=0, render_mode="rgb_array")
    env.reset()
    env.step(env.action_space.sample())
    frame = env.render()
    assert frame.dtype == "uint8" and frame.ndim == 3 and frame.shape[2] == 3, name
    assert frame.std() > 5, name
    env.close()
    env.close()
"""


def run(code: str, *arguments: str, gl: str | None) -> subprocess.CompletedProcess[str]:
    hidden = ("MUJOCO_GL", "PYOPENGL_PLATFORM", "DISPLAY", "PYTHONWARNINGS")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    if gl is not None:
        environment["MUJOCO_GL"] = gl
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("gl", [None, "disable"])
def test_silent_without_opengl_and_equal_in_another_process(
    gl: str | None, tmp_path: pathlib.Path
) -> None:
    names = installed(ONE_OF_EACH)
    target = tmp_path / "rollouts.json"
    finished = run(ROLLOUTS, str(target), *names, gl=gl)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")
    theirs = json.loads(target.read_text())
    for name in names:
        ours = rollout(envs.make(name, seed=9), episode=1, steps=20)
        np.testing.assert_array_equal(ours, theirs[name])


@pytest.mark.skipif("works" not in detect.gl_backends().values(), reason="no OpenGL here")
def test_every_suite_draws_frames() -> None:
    finished = run(FRAMES, *installed(ONE_OF_EACH), gl=None)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


def test_a_wrong_gl_setting_is_explained() -> None:
    finished = run("from fog import envs; envs.make('HalfCheetah-v4', seed=0)", gl="nonsense")
    last = finished.stderr.splitlines()[-1]
    assert "UserError" in last and "MUJOCO_GL='nonsense'" in last and "unset it" in last
