"""Run directories on disk: where they are, and what each says about itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow

from diagnostics import files

_MARKS = ("config.yaml", "manifest.json", "evals.csv", "train.csv")
_SEED = re.compile(r"^seed(\d+)$")

_BEFORE = {"action_repeat": 1, "termination": "suite", "cuer_quota": "batch"}
"""What settings that came later were for runs recorded without them."""


def discover(root: Path) -> Iterator[Path]:
    """The run directories at or below `root`, in order of their names."""
    for folder, below, names in os.walk(root):
        path = Path(folder)
        if any(mark in names for mark in _MARKS) or _SEED.match(path.name):
            below.clear()
            yield path
        else:
            below.sort()


def slug(task: str) -> str:
    """A task's name as a directory name."""
    return task.replace(":", "-").replace("/", "-")


@dataclass
class RunFiles:
    """One run directory: what it says about itself, and what is wrong with it."""

    path: Path
    config: dict[str, Any] = field(default_factory=dict)
    """Settings by bare name."""
    manifest: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path) -> RunFiles:
        """Read config and manifest of a run directory."""
        run = cls(path)
        groups, problems = files.read_yaml(path / "config.yaml")
        for name, values in groups.items():
            run.config.update(values if isinstance(values, dict) else {name: values})
        if run.config:
            # CUER's quota was first that of a whole environment step, and not yet a setting.
            old = {"cuer_quota": "step"} if run.config.get("sampler") == "cuer" else {}
            run.config = {**_BEFORE, **old, **run.config}
        run.manifest, more = files.read_json(path / "manifest.json")
        run.problems += problems + more
        return run

    @property
    def seed(self) -> int:
        """The run's seed; -1 if nothing tells it."""
        if isinstance(self.config.get("seed"), int):
            return int(self.config["seed"])
        named = _SEED.match(self.path.name)
        return int(named[1]) if named else -1

    def name(self, setting: str, parent: int) -> str:
        """Task or variant: from the config, else from the directory `parent` levels up."""
        told = self.config.get(setting)
        return str(told) if told is not None else self.path.absolute().parents[parent - 1].name

    def csv(self, name: str) -> tuple[pyarrow.Table | None, list[str]]:
        """One of the run's CSV tables, and what is wrong with it."""
        table, problems = files.read_csv(self.path / f"{name}.csv")
        if table is None and self.manifest.get("status") == "finished" and name != "events":
            problems.append(f"finished, but {name}.csv is missing or empty")
        return table, problems
