"""Which suites and OpenGL backends are found, and what is said about those that are not."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import warnings
from importlib import metadata

import pytest

from fog import envs
from fog.envs import detect, gl
from fog.errors import UserError


def test_the_four_suites_of_the_paper() -> None:
    found = {status.suite: status for status in detect.suites()}
    assert list(found) == ["mujoco", "dmc", "metaworld", "humanoidbench"]
    assert found["metaworld"].available
    assert found["metaworld"].version == metadata.version("metaworld")
    assert all("\n" not in status.detail for status in found.values())


def test_a_missing_package_is_named_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    found = detect.importlib.util.find_spec
    monkeypatch.setattr(
        detect.importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "metaworld" else found(name, *rest),
    )
    status = {status.suite: status for status in detect.suites()}["metaworld"]
    assert not status.available
    assert status.detail == "metaworld missing: pip install metaworld"


def test_the_wrong_mujoco_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version
    monkeypatch.setattr(
        metadata, "version", lambda name: "4.0.0" if name == "mujoco" else version(name)
    )
    found = {status.suite: status for status in detect.suites()}
    assert not found["metaworld"].available
    assert 'pip install "mujoco==' in found["metaworld"].detail
    assert found["dmc"].available


def test_a_humanoidbench_without_assets_is_noticed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "humanoid_bench"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "humanoid_bench", raising=False)
    status = detect.humanoidbench()
    assert not status.available
    assert "without its assets" in status.detail
    assert status.detail.endswith(": `make humanoid` in the checkout")


def test_detection_imports_no_suite() -> None:
    code = (
        "import sys; from fog.envs import detect; detect.suites(); "
        "print([m for m in ('torch', 'mujoco', 'gymnasium', 'dm_control') if m in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert finished.stdout.strip() == "[]", finished.stderr


def test_every_backend_gets_an_answer() -> None:
    answers = envs.gl_backends()
    assert list(answers) == ["egl", "osmesa", "glfw"]
    assert all(answer and "\n" not in answer for answer in answers.values())


def test_a_crashing_backend_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gl, "_TRIAL", "import os; os.abort()")
    monkeypatch.setattr(gl, "_obstacle", lambda backend: None)
    assert set(gl.try_backends().values()) == {"crashed with signal 6"}


def test_a_backend_without_a_driver_is_one_plain_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo's own words would be an ImportError, or an attribute that None does not have."""
    monkeypatch.setattr(gl, "_TRIAL", "raise AttributeError('NoneType has no eglQueryString')")
    monkeypatch.setattr(gl, "_obstacle", lambda backend: None)
    (answer,) = set(gl.try_backends().values())
    assert answer.startswith("no context from its driver: on Debian, apt-get install libegl1")
    assert "Error" not in answer and "\n" not in answer


def test_a_hanging_backend_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gl, "_TRIAL", "import time; time.sleep(60)")
    monkeypatch.setattr(gl, "_obstacle", lambda backend: None)
    assert set(gl.try_backends(timeout=0.2).values()) == {"no answer in 0.2 s"}


def test_the_first_working_backend_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "")
    monkeypatch.setattr(gl, "_try_backend", lambda name: "works" if name == "osmesa" else "broken")
    assert gl.require_backend() == "osmesa"
    assert os.environ["MUJOCO_GL"] == "osmesa"


def test_the_users_backend_is_kept_or_refused_but_never_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gl, "_try_backend", lambda name: "works" if name == "egl" else "broken")
    monkeypatch.setenv("MUJOCO_GL", "egl")
    assert gl.require_backend() == "egl"
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    with pytest.raises(UserError, match=r"MUJOCO_GL=osmesa does not work here \(broken\)"):
        gl.require_backend()
    monkeypatch.setenv("MUJOCO_GL", "disable")
    with pytest.raises(UserError, match="MUJOCO_GL=disable draws nothing"):
        gl.require_backend()
    assert os.environ["MUJOCO_GL"] == "disable"


def test_without_any_backend_the_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "")
    monkeypatch.setattr(gl, "_try_backend", lambda name: "broken")
    with pytest.raises(UserError, match="apt-get install libegl1 libgles2 libosmesa6"):
        envs.make("HalfCheetah-v4", seed=0, render_mode="rgb_array")


def test_the_users_own_warnings_still_reach_him() -> None:
    filters = list(warnings.filters)
    envs.make("HalfCheetah-v4", seed=0).close()
    assert list(warnings.filters) == filters
    with pytest.warns(DeprecationWarning, match="mine"):
        warnings.warn("mine", DeprecationWarning, stacklevel=1)
