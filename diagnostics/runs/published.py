"""Published curves as runs, so that `diagnostics.load` reads a folder of them like any other.

A method takes the place of a variant, with `peer:` before its name. An evaluation is one row of
`evals`: the files hold means over episodes. T, which rules and figures need, is the paper's; what
was published beyond it is left out, so that *final* means the same for all.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from diagnostics.errors import RunsWarning
from diagnostics.paper import tables as paper
from diagnostics.paper.methods import PREFIX, method
from diagnostics.peers import tidy
from diagnostics.peers.load import Peers, load_peers
from diagnostics.runs.directories import RunFiles, spelled

PUBLISHED = "published"
"""The status of such a run."""


@dataclass
class PeerRun(RunFiles):
    """One published run. `path` is the table that holds it."""

    curve: dict[str, Any] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The table, and which of its runs this is."""
        return spelled(f"{self.path}:{self.config['task']}:{self.config['seed']}")

    def csv(
        self, name: str, columns: Collection[str] | None = None
    ) -> tuple[pyarrow.Table | None, list[str]]:
        """The evaluations; nothing else was published."""
        if name != "evals":
            return None, []
        kept = {key: values for key, values in self.curve.items() if _wanted(key, columns)}
        return pyarrow.table(kept), []


@dataclass
class FramedRun(RunFiles):
    """A run of ours whose tables count frames, as published ones do, and not decisions."""

    repeat: int = 1

    def csv(
        self, name: str, columns: Collection[str] | None = None
    ) -> tuple[pyarrow.Table | None, list[str]]:
        """The run's table with steps in frames."""
        table, problems = super().csv(name, columns)
        if table is not None and "env_step" in table.column_names:
            frames = pyarrow.compute.multiply(table["env_step"], self.repeat)
            table = table.set_column(table.column_names.index("env_step"), "env_step", frames)
        return table, problems


def _wanted(column: str, columns: Collection[str] | None) -> bool:
    return columns is None or column in columns


def in_frames(run: RunFiles) -> RunFiles:
    """The run itself if each of its decisions is one frame, else a copy that counts frames."""
    repeat = run.config.get("action_repeat", 1)
    if not isinstance(repeat, int) or repeat <= 1:
        return run
    config = dict(run.config)
    if "steps" in config:
        config["steps"] *= repeat
    return FramedRun(run.path, config, run.manifest, run.problems, run.record, repeat)


def holds_peers(root: Path) -> bool:
    """Whether a folder holds tidy tables of published curves."""
    return any(tidy.is_tidy(path) for path in tidy.tables(root))


def peer_runs(peers: Path | Peers) -> Iterator[PeerRun]:
    """The published runs of a folder."""
    if isinstance(peers, Path):
        peers = load_peers(peers)
        if peers.problems:
            warnings.warn("; ".join(peers.problems), RunsWarning, stacklevel=3)
    tasks = {task.name: task for task in paper.tasks().itertuples()}
    for run in peers.runs:
        facts, about = method(run.method), tasks[run.task]
        config = {
            "task": run.task,
            "variant": f"{PREFIX}{run.method}",
            "seed": run.seed,
            "scale": 1.0,
            # Steps are frames, whatever the action repeat was.
            "action_repeat": 1,
            "steps": int(about.steps),
        }
        if not np.isnan(facts.replay_ratio):
            config["replay_ratio"] = facts.replay_ratio
        shown = run.steps <= run.until
        manifest = {
            "status": PUBLISHED,
            "env_step": int(run.steps[shown].max(initial=0)),
            "group": str(about.group),
            "metric": str(about.metric),
            "normaliser": float(about.normaliser),
        }
        column = "success_once" if about.metric == "success" else "return"
        curve = {"env_step": run.steps[shown], column: run.values[shown]}
        yield PeerRun(peers.path / f"{run.method}.csv", config, manifest, curve=curve)
