from __future__ import annotations

import pytest
import torch

from fog.errors import UserError
from fog.settings.variants import resolve
from fog.training import device

CPU = torch.device("cpu")


def test_auto_compiles_when_the_run_is_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "compile_obstacle", lambda where: None)
    assert device.compiles(resolve("humanoid-walk", "fog"), CPU)
    assert not device.compiles(resolve("humanoid-walk", "fog", steps=6_000), CPU)
    assert device.compiles(
        resolve("humanoid-walk", "fog", steps=6_000, priming_updates=60_000), CPU
    )
    assert not device.compiles(resolve("humanoid-walk", "fog", compile="off"), CPU)
    assert device.compiles(resolve("humanoid-walk", "fog", steps=6_000, compile="on"), CPU)


@pytest.mark.parametrize("cause", ["compiler", "space"])
def test_what_cannot_compile_runs_uncompiled_or_says_why(
    monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    if cause == "compiler":
        monkeypatch.setattr(device.shutil, "which", lambda name: None)
    else:
        monkeypatch.setattr(torch, "__file__", "/home/a b/torch/__init__.py")
    assert not device.compiles(resolve("humanoid-walk", "fog"), CPU)
    with pytest.raises(UserError, match="or set it to off"):
        device.compiles(resolve("humanoid-walk", "fog", compile="on"), CPU)


def test_the_compiler_of_the_environment_is_the_one_that_must_exist(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert device.compile_obstacle(CPU) == "needs the C++ compiler no-such-compiler; install it"


def test_memory_settings_do_no_harm_where_the_c_library_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device.keep_memory()
    monkeypatch.setattr(device.ctypes, "CDLL", lambda name: object())
    device.keep_memory()
