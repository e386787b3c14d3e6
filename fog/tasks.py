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
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from fog.errors import ConfigError

Suite = Literal["mujoco", "dmc", "metaworld", "humanoidbench", "gym"]
Metric = Literal["return", "success"]

DEFAULT_RESETS = (15_000, 50_000, 100_000, 200_000, 400_000, 600_000, 800_000)
"""Appendix B.1: the reset list of every task but the four below."""

BRO_RESETS = (15_000, 50_000, 250_000, 500_000, 750_000)
"""Appendix B.1: BRO's shorter list, for h1-stand, h1-walk, h1-stair and h1-slide."""


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
    """Steps until truncation; None leaves the suite's own limit in force."""
    action_repeat: int = 1
    metric: Metric = "return"
    normaliser: float | None = None
    """Score that counts as 1: 1000 on DMC, the success bar on HumanoidBench, 1 on Meta-World.

    No project normalises MuJoCo by a constant; there it is the best mean printed in the paper.
    """
    paper_row: str | None = None
    """The task's row in the paper's tables."""

    @property
    def slug(self) -> str:
        """The name as a directory name."""
        return self.name.replace(":", "-").replace("/", "-")

    @property
    def paper_scores(self) -> dict[str, PaperScore]:
        """The paper's printed results by algorithm; empty beyond the 41."""
        if self.paper_row is None:
            return {}
        return dict(_paper_scores()[_PAPER_TABLES[self.group], self.paper_row])


_PAPER_TABLES = {
    "MuJoCo": "Mujoco",
    "DMC-Easy": "DMC_EASY",
    "DMC-Medium": "DMC_MEDIUM",
    "DMC-Hard": "DMC_HARD",
    "Meta-World": "MetaWorld",
    "HumanoidBench": "HumanoidBench",
}
GROUPS = tuple(_PAPER_TABLES)


@functools.cache
def _paper_scores() -> dict[tuple[str, str], dict[str, PaperScore]]:
    scores: dict[tuple[str, str], dict[str, PaperScore]] = {}
    with (importlib.resources.files("fog") / "data" / "paper_tables.csv").open() as file:
        for row in csv.DictReader(file):
            cell = PaperScore(float(row["mean"]), float(row["std"]))
            scores.setdefault((row["table"], row["task"]), {})[row["algorithm"]] = cell
    return scores


def _mujoco(name: str) -> Task:
    row = name.removesuffix("-v4")
    best = max(score.mean for score in _paper_scores()["Mujoco", row].values())
    return Task(
        name,
        "mujoco",
        "MuJoCo",
        name,
        steps=600_000,
        episode_length=1000,
        normaliser=best,
        paper_row=row,
    )


def _dmc(group: str, steps: int, name: str) -> Task:
    # The paper prints every row in title case but this one.
    row = name if name == "finger-spin" else name.replace("-", " ").title()
    return Task(
        name,
        "dmc",
        group,
        name,
        steps=steps,
        episode_length=1000,
        normaliser=1000.0,
        paper_row=row,
    )


def _metaworld(task: str) -> Task:
    # 200 steps is the horizon of BRO and TD-MPC2, whose results the paper prints.
    return Task(
        f"mw-{task}",
        "metaworld",
        "Meta-World",
        task,
        pessimism=0.0,
        episode_length=200,
        metric="success",
        normaliser=1.0,
        paper_row=task.replace("-", " ").capitalize(),
    )


def _humanoidbench(task: str, success_bar: float) -> Task:
    short_list = task in {"stand", "walk", "stair", "slide"}
    return Task(
        f"h1-{task}",
        "humanoidbench",
        "HumanoidBench",
        f"h1-{task.replace('-', '_')}-v0",
        reset_steps=BRO_RESETS if short_list else DEFAULT_RESETS,
        episode_length=1000,
        normaliser=success_bar,
        paper_row=task.replace("-", " ").title(),
    )


_HUMANOIDBENCH_BARS = {
    "balance-hard": 800.0,
    "balance-simple": 800.0,
    "crawl": 700.0,
    "hurdle": 700.0,
    "maze": 1200.0,
    "pole": 700.0,
    "reach": 12000.0,
    "run": 700.0,
    "sit-hard": 750.0,
    "sit-simple": 750.0,
    "slide": 700.0,
    "stair": 700.0,
    "stand": 800.0,
    "walk": 700.0,
}


def _registry() -> Iterable[Task]:
    for name in ("Ant-v4", "HalfCheetah-v4", "Humanoid-v4", "Walker2d-v4"):
        yield _mujoco(name)
    for name in ("cartpole-balance", "cartpole-swingup", "finger-spin", "hopper-stand"):
        yield _dmc("DMC-Easy", 150_000, name)
    for name in ("acrobot-swingup", "hopper-hop", "humanoid-stand", "walker-run"):
        yield _dmc("DMC-Medium", 500_000, name)
    for name in ("dog-run", "dog-trot", "dog-walk", "humanoid-run", "humanoid-walk"):
        yield _dmc("DMC-Hard", 1_000_000, name)
    for name in (
        "assembly",
        "coffee-pull",
        "coffee-push",
        "disassemble",
        "pick-out-of-hole",
        "pick-place",
        "pick-place-wall",
        "push-back",
        "shelf-place",
        "stick-push",
    ):
        yield _metaworld(name)
    for name, bar in _HUMANOIDBENCH_BARS.items():
        yield _humanoidbench(name, bar)


@functools.cache
def registry() -> dict[str, Task]:
    """The paper's 41 tasks by name, in the order of its tables."""
    return {task.name: task for task in _registry()}


def get(name: str) -> Task:
    """The task of that name, or of an escape such as `gym:Pendulum-v1`.

    Raises:
        ConfigError: the name is unknown; the message suggests the nearest one.
    """
    tasks = registry()
    if name in tasks:
        return tasks[name]
    prefix, colon, rest = name.partition(":")
    if colon:
        return _escape(name, prefix, rest)
    near = difflib.get_close_matches(name.replace("_", "-"), tasks, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else "`fog tasks` lists them"
    raise ConfigError(f"unknown task {name!r}: {hint}")


def _escape(name: str, prefix: str, rest: str) -> Task:
    if not rest:
        raise ConfigError(
            f"task {name!r} names nothing after {prefix!r}: for example gym:Hopper-v4"
        )
    match prefix:
        case "gym":
            return Task(name, "gym", "other", rest)
        case "dmc":
            if "-" not in rest:
                raise ConfigError(f"task {name!r}: write dmc:domain-task, such as dmc:cheetah-run")
            return Task(name, "dmc", "other", rest, episode_length=1000, normaliser=1000.0)
        case "mw":
            return Task(
                name,
                "metaworld",
                "other",
                rest,
                pessimism=0.0,
                episode_length=200,
                metric="success",
                normaliser=1.0,
            )
        case "hb":
            return Task(name, "humanoidbench", "other", rest)
        case _:
            raise ConfigError(
                f"task {name!r}: unknown suite {prefix!r}; use gym:, dmc:, mw: or hb:"
            )
