"""Importing the suites: without their noise, and with one clear line where it fails."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import warnings
from collections.abc import Iterator
from types import ModuleType

from fog.errors import UserError


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings and prints while a suite is imported or an environment built.

    The suites warn there about their own age (Gymnasium's v4 tasks), a missing display (GLFW) and
    deprecated calls of theirs. Nothing of that is the user's to fix, and the user's own filters
    are back afterwards.
    """
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def import_suite(module: str, fix: str) -> ModuleType:
    """Import a module of a suite; an error names the `fix`, or MUJOCO_GL if that is at fault.

    MuJoCo and dm_control load the OpenGL library that MUJOCO_GL names as soon as they are imported,
    and where it is broken they fail with whatever its loader raises.
    """
    package = module.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        raise UserError(f"{package} is not installed: {fix}")
    try:
        return importlib.import_module(module)
    except Exception as error:
        setting = os.environ.get("MUJOCO_GL")
        if setting is None:
            raise
        reason = " ".join(str(error).split())
        raise UserError(
            f"{package} does not load with MUJOCO_GL={setting!r} ({reason}): "
            "unset it, training needs no OpenGL"
        ) from error
