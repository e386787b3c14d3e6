"""Errors that Python raises name settings and arguments, not flags of the command line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import diagnostics
import fog
from diagnostics.errors import AnalysisError
from fog.errors import UserError

ROOT = Path(__file__).parents[3]
FLAG = re.compile(r"(?<![\w-])--[a-z]")
COMMAND = re.compile(r"`[^`]*`|(pip|git|apt-get) \S.*")
# What only commands call.
COMMANDS = ("fog/cli", "fog/sweep", "diagnostics/commands", "diagnostics/peers")


def texts(path: Path) -> list[str]:
    """The messages of all exceptions that a module raises, without commands to be typed."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and node.exc is not None:
            parts = [
                part.value
                for part in ast.walk(node.exc)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            found.append(COMMAND.sub("", "".join(parts)))
    return found


def test_no_error_of_the_library_names_a_flag() -> None:
    named = {
        f"{path.relative_to(ROOT)}: {text}"
        for package in ("fog", "diagnostics")
        for path in (ROOT / package).rglob("*.py")
        if not path.relative_to(ROOT).as_posix().startswith(COMMANDS)
        for text in texts(path)
        if FLAG.search(text)
    }
    assert named == set()


def test_mistakes_in_python(tmp_path: Path) -> None:
    def tiny(**wishes: object) -> fog.Config:
        settings = {
            "out": str(tmp_path),
            "steps": 60,
            "width": 8,
            "warmup_steps": 50,
            "eval_every": 60,
        }
        settings |= {"eval_episodes": 1, "batch_size": 4, "device": "cpu"}
        return fog.resolve("gym:Pendulum-v1", "sac", **(settings | wishes))

    fog.train(tiny())
    calls = [
        lambda: fog.train(tiny()),
        lambda: fog.train(tiny(), resume=True),
        lambda: fog.train(tiny(seed=1), resume=True),
        lambda: fog.train(tiny(seed=2, wandb="project")),
        lambda: fog.resolve("gym:Pendulum-v1", "sac", widht=3),
        lambda: fog.resolve("gym:Pendulum-v1", "sac", width=-3),
        lambda: fog.resolve("cartpole-swngup", "sac"),
        lambda: fog.resolve("gym:Pendulum-v1", "sca"),
        lambda: fog.train(tiny(seed=3, probes=("dormacy",))),
        lambda: diagnostics.load(tmp_path / "nowhere"),
        lambda: diagnostics.load(tmp_path, grid="x"),
    ]
    for call in calls:
        with pytest.raises((UserError, AnalysisError)) as refused:
            call()
        assert not FLAG.search(COMMAND.sub("", str(refused.value))), refused.value
        assert "\n" not in str(refused.value)
