"""Run directories on disk: where they are, and what each says about itself."""

from __future__ import annotations

import fcntl
import math
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow

from diagnostics.runs import files, integrity, probe_tables
from diagnostics.runs.integrity import Record
from fog.records.columns import CSV_COLUMNS

_MARKS = ("config.yaml", "manifest.json", "evals.csv", "train.csv")
_SEED = re.compile(r"^seed(\d{1,15})$")
MOST = 10**15
"""The largest number a run can have recorded: `fog.settings.options` refuses larger ones."""

_SETTINGS: dict[str, type] = {
    **dict.fromkeys(("task", "variant"), str),
    **dict.fromkeys(("seed", "steps", "window_steps", "width", "capacity"), int),
    **dict.fromkeys(("scale", "replay_ratio"), float),
}
_FACTS: dict[str, type] = {
    **dict.fromkeys(("status", "group", "metric", "paper_row", "started", "ended"), str),
    **dict.fromkeys(("reason", "git_commit"), str),
    **dict.fromkeys(("env_step", "obs_dim", "act_dim"), int),
    **dict.fromkeys(("normaliser", "final_return"), float),
}
"""Types of what the analysis computes with. A run of a stranger can say anything."""

_BEFORE = {"action_repeat": 1, "termination": "suite", "cuer_quota": "batch"}
"""What settings that came later were for runs recorded without them."""


def discover(root: Path) -> Iterator[Path]:
    """The run directories at or below `root`, in order of their names.

    Hidden folders are skipped: an unfinished export is in one.
    """
    for folder, below, names in os.walk(root):
        path = Path(folder)
        if any(mark in names for mark in _MARKS) or _SEED.match(path.name):
            below.clear()
            yield path
        else:
            below[:] = sorted(name for name in below if not name.startswith("."))


@contextmanager
def shared(path: Path) -> Iterator[str | None]:
    """Keep writers out of a run directory while it is read; yields why it cannot, or None.

    The other side is `fog.records.run_directory`, whose lock is exclusive. A run without a
    lock file, such as an exported one, has no writer.
    """
    try:
        handle = os.open(path / ".lock", os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        yield f"its lock cannot be opened ({error.strerror})"
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        reason = None
    except OSError:
        reason = "is being written"
    try:
        yield reason
    finally:
        os.close(handle)


def slug(task: str) -> str:
    """A task's name as a directory name."""
    return task.replace(":", "-").replace("/", "-")


def spelled(name: str) -> str:
    """A name for tables and figures: neither bytes that are no text nor control characters.

    A file name may hold the former, and a library that cannot draw the latter warns of them with
    the character itself, which a terminal obeys.
    """
    if name.isprintable():
        return name
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in name
    )


def _drop_misfits(file: str, entries: dict[str, Any], types: dict[str, type]) -> list[str]:
    """Leave out entries of another type than theirs, and say so."""
    problems = []
    for name, kind in types.items():
        misfit = name in entries and not _fits(entries[name], kind)
        if misfit and entries.pop(name) is not None:
            problems.append(f"{file}: {name} is not {_WORDS[kind]}: left out")
    return problems


_WORDS = {str: "text", int: "an integer", float: "a number"}


def _fits(value: Any, kind: type) -> bool:
    if kind is str:
        return isinstance(value, str)
    number = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
    return number and abs(value) <= MOST


@dataclass
class RunFiles:
    """One run directory: what it says about itself, and what is wrong with it."""

    path: Path
    config: dict[str, Any] = field(default_factory=dict)
    """Settings by bare name."""
    manifest: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    record: Record = field(default_factory=Record)

    @classmethod
    def open(cls, path: Path) -> RunFiles:
        """Read config and manifest of a run directory, and look at the sizes of its files."""
        run = cls(path)
        groups, problems = files.read_yaml(path / "config.yaml")
        for name, values in groups.items():
            run.config.update(values if isinstance(values, dict) else {name: values})
        run.manifest, more = files.read_json(path / "manifest.json")
        run.problems += problems + more
        run.problems += _drop_misfits("config.yaml", run.config, _SETTINGS)
        if run.config:
            # Before it was a setting, CUER's quota was that of a whole environment step.
            old = {"cuer_quota": "step"} if run.config.get("sampler") == "cuer" else {}
            run.config = {**_BEFORE, **old, **run.config}
        run.problems += integrity.check_manifest(run.manifest)
        run.problems += _drop_misfits("manifest.json", run.manifest, _FACTS)
        run.record, unusable = Record.of(run.manifest)
        run.problems += unusable + run.record.check(path)
        run.problems += [
            f"when it was exported: {line}" for line in _lines(run.manifest.get("damaged"))
        ]
        return run

    @property
    def seed(self) -> int:
        """The run's seed; -1 if unknown."""
        if "seed" in self.config:
            return int(self.config["seed"])
        named = _SEED.match(self.path.name)
        return int(named[1]) if named else -1

    def name(self, setting: str, parent: int) -> str:
        """Task or variant: from the config, else from the directory `parent` levels up."""
        told = self.config.get(setting)
        name = told if told is not None else self.path.absolute().parents[parent - 1].name
        return spelled(name)

    def order(self) -> tuple[str, str, float, int, str]:
        """Its place in a table of runs: by task, variant, scale, seed and directory."""
        scale = self.config.get("scale")
        known = scale if isinstance(scale, int | float) else math.inf
        return slug(self.name("task", 2)), self.name("variant", 1), known, self.seed, str(self.path)

    @property
    def where(self) -> str:
        """The run's directory as text for tables and messages."""
        return spelled(str(self.path))

    def csv(
        self, name: str, columns: Collection[str] | None = None
    ) -> tuple[pyarrow.Table | None, list[str]]:
        """One of the run's CSV tables, or some of its `CSV_COLUMNS`, and what is wrong with it."""
        file = f"{name}.csv"
        if file in self.record.refused:
            return None, []
        table, problems = files.read_csv(
            self.path / file, CSV_COLUMNS[name], lambda raw: self.record.whole(file, raw), columns
        )
        # Whoever recorded somebody else's agent may have seen no evaluation, and says so.
        excused = self.manifest.get("unmeasured") or {}
        ended = self.manifest.get("status") == "finished" and name not in ("events", *excused)
        if table is None and ended and not problems:
            problems.append(f"finished, but {name}.csv is missing or empty")
        return table, problems

    def table(
        self, name: str, columns: Collection[str] | None = None, last: int | None = None
    ) -> tuple[pyarrow.Table | None, list[str]]:
        """One of the run's probe tables, and what is wrong with it."""
        return probe_tables.read(self.path, name, self.record, columns=columns, last=last)


def _lines(value: Any) -> list[str]:
    return [str(line) for line in value] if isinstance(value, list) else []
