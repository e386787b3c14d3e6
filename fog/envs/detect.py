"""What is installed: the suites and the OpenGL backends. Imports none of them."""

from __future__ import annotations

import importlib.util
import pathlib
from dataclasses import dataclass
from importlib import metadata

HUMANOIDBENCH_INSTALL = "`make humanoid` in the checkout"


@dataclass(frozen=True)
class SuiteStatus:
    """Whether the tasks of a suite can be made on this machine."""

    suite: str
    available: bool
    version: str | None
    """The installed version, or None."""
    detail: str
    """What is installed, or how to repair it."""


def suites() -> list[SuiteStatus]:
    """The suites of the paper, in the order of its tables."""
    return [
        _status("mujoco", "gymnasium", ("gymnasium", "mujoco"), 'pip install "gymnasium[mujoco]"'),
        _status("dmc", "dm_control", ("dm_control", "mujoco"), "pip install dm_control"),
        _status("metaworld", "metaworld", ("metaworld", "mujoco"), "pip install metaworld"),
        humanoidbench(),
    ]


def humanoidbench() -> SuiteStatus:
    """HumanoidBench, which is not on the package index and easily installed incompletely."""
    modules = ("humanoid_bench", "jax", "torch", "dm_control", "mujoco")
    status = _status("humanoidbench", "humanoid_bench", modules, HUMANOIDBENCH_INSTALL)
    spec = importlib.util.find_spec("humanoid_bench")
    if spec is None or spec.origin is None:
        return status
    if (pathlib.Path(spec.origin).parent / "assets" / "envs").is_dir():
        return status
    detail = f"humanoid_bench was installed without its assets: {HUMANOIDBENCH_INSTALL}"
    return SuiteStatus("humanoidbench", False, status.version, detail)


def gl_backends() -> dict[str, str]:
    """The OpenGL backends of MuJoCo: "works", or why not. Takes about a second."""
    if importlib.util.find_spec("mujoco") is None:
        return {}
    from fog.envs import gl

    return gl.try_backends()


def _status(suite: str, package: str, modules: tuple[str, ...], fix: str) -> SuiteStatus:
    version = _version(package)
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        return SuiteStatus(suite, False, version, f"{', '.join(missing)} missing: {fix}")
    mismatch = _mujoco_mismatch(package)
    if mismatch:
        return SuiteStatus(suite, False, version, mismatch)
    return SuiteStatus(suite, True, version, f"{package} {version}, mujoco {_version('mujoco')}")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _mujoco_mismatch(package: str) -> str | None:
    """Meta-World pins MuJoCo exactly, and a newer one changes its observations or breaks it."""
    from packaging.requirements import Requirement

    # HumanoidBench pins an old MuJoCo too, but runs on ours: see fog.envs.humanoidbench.
    installed = _version("mujoco")
    if installed is None or package == "humanoid_bench":
        return None
    for line in metadata.requires(package) or ():
        requirement = Requirement(line)
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": "mujoco"})
        if requirement.name == "mujoco" and applies and installed not in requirement.specifier:
            wanted = f"mujoco{requirement.specifier}"
            return f'{package} needs {wanted}, not {installed}: pip install "{wanted}"'
    return None
