"""The paper's 41 tasks, and the escapes to any other task of the same suites.

A task is data: which simulator, how long the paper trains on it, its reset list, how its score is
read. Names are those of `fog tasks`; beyond the 41, `gym:ID`, `dmc:domain-task`, `mw:task` and
`hb:id` name anything the suites hold.
"""

from __future__ import annotations

import csv
import difflib
import functools
import importlib.resources
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from fog.errors import ConfigError
from fog.system.text import shown

Suite = Literal["mujoco", "dmc", "metaworld", "humanoidbench", "gym"]
Termination = Literal["suite", "never"]
Metric = Literal["return", "success"]

GROUPS = ("MuJoCo", "DMC-Easy", "DMC-Medium", "DMC-Hard", "Meta-World", "HumanoidBench")
"""The paper's result tables, in its order."""

DEFAULT_RESETS = (15_000, 50_000, 100_000, 200_000, 400_000, 600_000, 800_000)
"""Appendix B.1: the reset list of tasks beyond the 41, and of all of those but four."""


class PaperScore(NamedTuple):
    """One printed table cell: mean and standard deviation over three seeds."""

    mean: float
    std: float


@dataclass(frozen=True)
class Task:
    """Everything about a task that does not depend on the agent."""

    name: str
    """The name on the command line, such as `humanoid-walk`."""
    suite: Suite
    group: str
    """The table of the paper that holds it (`DMC-Hard`), or `other` beyond the 41."""
    env_id: str
    """The suite's own name: a Gymnasium id, `domain-task`, or a Meta-World task."""
    steps: int = 1_000_000
    """The paper's training budget in environment steps."""
    reset_steps: tuple[int, ...] = DEFAULT_RESETS
    pessimism: float = 1.0
    """1 combines the twin critics by their minimum, 0 by their mean (Meta-World)."""
    episode_length: int | None = None
    """Simulator steps until truncation; None leaves the suite's own limit in force."""
    action_repeat: int = 1
    """Simulator steps for each environment step: how often an action is applied."""
    termination: Termination = "suite"
    """`never` lets an episode run to its time limit where the suite would end it."""
    metric: Metric = "return"
    normaliser: float | None = None
    """Score that counts as 1: 1000 on DMC, the success bar on HumanoidBench, 1 on Meta-World.

    No project normalises MuJoCo by a constant; there it is the best mean printed in the paper.
    """
    paper_table: str | None = None
    """The paper's table that prints its scores; None beyond the 41."""
    paper_row: str | None = None
    """The task's row in that table."""

    @property
    def slug(self) -> str:
        """The name as a directory name."""
        return self.name.replace(":", "-").replace("/", "-")

    @property
    def paper_scores(self) -> dict[str, PaperScore]:
        """The paper's printed results by algorithm; empty beyond the 41."""
        if self.paper_table is None or self.paper_row is None:
            return {}
        return dict(_paper_scores()[self.paper_table, self.paper_row])


def _rows(name: str) -> list[dict[str, str]]:
    """A CSV table of the package. The analysis reads the same files, without importing `fog`."""
    with (importlib.resources.files("fog") / "data" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@functools.cache
def _paper_scores() -> dict[tuple[str, str], dict[str, PaperScore]]:
    scores: dict[tuple[str, str], dict[str, PaperScore]] = {}
    for row in _rows("paper_tables.csv"):
        cell = PaperScore(float(row["mean"]), float(row["std"]))
        scores.setdefault((row["table"], row["task"]), {})[row["algorithm"]] = cell
    return scores


_SUITES: dict[str, dict[str, Any]] = {
    "mujoco": {"episode_length": 1000},
    "dmc": {"episode_length": 1000},
    # 200 steps is the horizon of BRO and TD-MPC2, whose results the paper prints.
    "metaworld": {"episode_length": 200, "pessimism": 0.0},
    "humanoidbench": {"episode_length": 1000},
}


def _task(row: dict[str, str]) -> Task:
    return Task(
        row["name"],
        cast(Suite, row["suite"]),
        row["group"],
        row["env_id"],
        steps=int(row["steps"]),
        reset_steps=tuple(int(at) for at in row["reset_steps"].split()),
        metric=cast(Metric, row["metric"]),
        normaliser=float(row["normaliser"]),
        paper_table=row["paper_table"],
        paper_row=row["paper_row"],
        **_SUITES[row["suite"]],
    )


@functools.cache
def registry() -> dict[str, Task]:
    """The paper's 41 tasks by name, in the order of its tables."""
    return {row["name"]: _task(row) for row in _rows("tasks.csv")}


def get(name: str) -> Task:
    """The task of that name, or of an escape such as `gym:Pendulum-v1`.

    An escape that names one of the 41, such as `hb:h1-walk-v0`, is that task.
    """
    tasks = registry()
    if name in tasks:
        return tasks[name]
    prefix, colon, rest = name.partition(":")
    if colon and name.isprintable():
        return _escape(name, prefix, rest)
    near = difflib.get_close_matches(name.replace("_", "-"), tasks, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else "`fog tasks` lists them"
    raise ConfigError(f"unknown task {shown(name)}: {hint}")


_PREFIXES: dict[Suite, str] = {
    "mujoco": "gym",
    "dmc": "dmc",
    "metaworld": "mw",
    "humanoidbench": "hb",
}


_ESCAPES: dict[str, tuple[Suite, dict[str, Any]]] = {
    "gym": ("gym", {}),
    "dmc": ("dmc", {**_SUITES["dmc"], "normaliser": 1000.0}),
    "mw": ("metaworld", {**_SUITES["metaworld"], "metric": "success", "normaliser": 1.0}),
    "hb": ("humanoidbench", {}),
}
"""Suites by prefix, and what is known of any of their tasks."""


def _plain(prefix: str, env_id: str) -> str:
    """An id as `tasks.csv` spells it: suites take some in two ways."""
    if prefix == "dmc":
        return env_id.replace("_", "-")
    return env_id.removesuffix("-v3") if prefix == "mw" else env_id


def _escape(name: str, prefix: str, rest: str) -> Task:
    if not rest:
        raise ConfigError(
            f"task {shown(name)} lacks a name after {shown(prefix)}: for example gym:Hopper-v4"
        )
    for task in registry().values():
        if (prefix, _plain(prefix, rest)) == (_PREFIXES[task.suite], task.env_id):
            return task
    if prefix not in _ESCAPES:
        raise ConfigError(
            f"task {shown(name)}: unknown suite {shown(prefix)}; use gym:, dmc:, mw: or hb:"
        )
    if prefix == "dmc" and "-" not in rest:
        raise ConfigError(f"task {shown(name)}: write dmc:domain-task, such as dmc:cheetah-run")
    suite, facts = _ESCAPES[prefix]
    return Task(name, suite, "other", rest, **facts)
