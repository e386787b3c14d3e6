"""Sizes of observations and actions of the paper's tasks, known without making them.

`dimensions.csv` was written from the environments themselves, except for HumanoidBench (`h1-`),
which is not always installed: there it holds what its documentation says. A test compares it
with every task that can be made.
"""

from __future__ import annotations

import csv
import functools
import importlib.resources

from gymnasium.spaces import flatdim

from fog import envs
from fog.errors import UserError


@functools.cache
def table() -> dict[str, tuple[int, int]]:
    """(obs_dim, act_dim) of the 41 tasks."""
    with (importlib.resources.files("fog.cost") / "dimensions.csv").open() as file:
        rows = csv.DictReader(file)
        return {row["name"]: (int(row["obs_dim"]), int(row["act_dim"])) for row in rows}


def dimensions(task: str) -> tuple[int, int]:
    """(obs_dim, act_dim) of a task: from the table, else from the environment."""
    if task in table():
        return table()[task]
    try:
        env = envs.make(task, 0)
    except UserError as error:
        raise UserError(f"cannot estimate {task}: its dimensions are unknown; {error}") from None
    try:
        return flatdim(env.observation_space), flatdim(env.action_space)
    finally:
        env.close()
