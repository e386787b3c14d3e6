"""What is known about each published method: its name in figures, its protocol, its source.

The facts are data, `diagnostics/data/peers.csv`. A tidy file of a method that is not listed there
loads all the same; its protocol is then unknown.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

PREFIX = "peer:"
"""Prefix of a method's name in a variant column: both may be called `sac`."""

MAIN = ("tdmpc2", "simba-utd2", "bro-utd2", "bro-utd10", "simbav2-utd2", "xqc")
"""Drawn by default: the paper's baselines, then those published after them."""


@dataclass(frozen=True)
class Method:
    """One published method.

    Attributes:
        name: as in the tidy file.
        label: in figures and tables.
        family: the algorithm, whatever its replay ratio.
        replay_ratio: updates per decision of the agent; NaN if unknown.
        resets: `yes`, `no`, or `first only`.
        action_repeat: frames per decision outside MuJoCo, where it is 1; None if unknown.
        success: when an episode of Meta-World counts: at `any step`, or at the `last step`.
        repository: on GitHub.
        commit: that the facts were read at.
        licence: of the repository.
        file: within it.
    """

    name: str
    label: str
    family: str = ""
    replay_ratio: float = math.nan
    resets: str = ""
    action_repeat: int | None = None
    success: str = ""
    repository: str = ""
    commit: str = ""
    licence: str = ""
    file: str = ""


@cache
def methods() -> dict[str, Method]:
    """Every known method by name, in the order in which figures draw them."""
    text = files("diagnostics").joinpath("data", "peers.csv").read_text(encoding="utf-8")
    found = {}
    for row in csv.DictReader(text.splitlines()):
        name, ratio, repeat = (row.pop(key) for key in ("method", "replay_ratio", "action_repeat"))
        found[name] = Method(
            name,
            replay_ratio=float(ratio) if ratio else math.nan,
            action_repeat=int(repeat) if repeat else None,
            **row,
        )
    return found


def method(name: str) -> Method:
    """The facts about a method; of one that is not listed only its name."""
    return methods().get(name) or Method(name, name)


def ordered(names: Iterable[str]) -> list[str]:
    """Method names in the order of `methods`, others after them by name."""
    rank = {name: place for place, name in enumerate(methods())}
    return sorted(set(names), key=lambda name: (rank.get(name, len(rank)), name))
