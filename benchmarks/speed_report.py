"""Tables and requirements of the speed benchmark."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from speed_rounds import Measured

from fog.system.machine import git_commit, hardware

PACKAGES = ("fog-diagnostics", "torch", "numpy", "stable-baselines3", "sbx-rl", "jax", "gymnasium")
QUIET = 0.5
"""Load average up to which wall times are to be trusted."""


@dataclass(frozen=True)
class Requirement:
    """A ratio that must be reached, by both clocks; None where a peer is missing."""

    name: str
    wall: float | None
    processor: float | None
    limit: float

    def met(self, clock: str) -> bool | None:
        """Whether it is, by `wall` or `processor` time."""
        value: float | None = getattr(self, clock)
        return None if value is None else value >= self.limit


@dataclass
class Part:
    """What one part of the benchmark found."""

    title: str
    table: list[str]
    data: list[dict[str, Any]]
    requirements: list[Requirement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A Markdown table; None is a dash."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return lines + ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}" if value < 10 else f"{value:,.0f}"
    return str(value)


def required(name: str, found: Measured, slow: str, fast: str, limit: float) -> Requirement:
    """That `fast` takes at most 1 / limit of the time of `slow`."""
    return Requirement(
        name, found.ratio(slow, fast, "wall"), found.ratio(slow, fast, "processor"), limit
    )


def seconds(found: Measured) -> dict[str, Any]:
    """Everything measured, as plain data."""
    return {"wall": found.wall, "processor": found.processor, "missing": found.missing}


def missing_notes(found: Sequence[Measured]) -> list[str]:
    """One line for each contender that could not be measured, and why."""
    reasons = {name: reason for each in found for name, reason in each.missing.items()}
    return [f"{name} not measured: {reason}" for name, reason in reasons.items()]


def circumstances(peers_python: str) -> dict[str, Any]:
    """Machine, versions and load when it is called, that is, before anything is measured."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {name: value for name, value in hardware().items() if name != "host"},
        "cores_allowed": len(os.sched_getaffinity(0)),
        "commit": git_commit(),
        "python": sys.version.split()[0],
        "versions": _versions(sys.executable),
        "peers_versions": _versions(peers_python),
        "load_before": os.getloadavg(),
    }


def _versions(python: str) -> dict[str, str | None]:
    command = [python, __file__, *PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, str | None] = json.loads(done.stdout)
    return found


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def markdown(about: dict[str, Any], parts: Sequence[Part], clock: str) -> str:
    """The whole report."""
    machine, versions = about["machine"], about["versions"]
    peers = about["peers_versions"]
    load = about["load_before"][0]
    lines = [
        "# Speed",
        "",
        f"{about['date']}, {machine['cpu']}, {about['cores_allowed']} cores, load average "
        f"{load:.2f} before and {about['load_after'][0]:.2f} after. "
        f"{about['rounds']} rounds of turns of {about['turn']:g} s; times are {clock} times.",
        "",
        f"fog {about['commit']}, Python {about['python']}, torch {versions['torch']}, "
        + ", ".join(f"{name} {peers[name]}" for name in PACKAGES[3:6])
        + f" (with torch {peers['torch']}).",
    ]
    if load > QUIET and clock == "wall":
        lines += ["", "**The machine was busy: trust the processor times, not the wall times.**"]
    for part in parts:
        lines += ["", f"## {part.title}", "", *part.table]
        for note in part.notes:
            lines += ["", note]
    requirements = [each for part in parts for each in part.requirements]
    if requirements:
        lines += ["", "## Requirements", "", *_requirements(requirements, clock)]
    return "\n".join(lines) + "\n"


def _requirements(requirements: Sequence[Requirement], clock: str) -> list[str]:
    words = {None: "not measured", True: "met", False: "NOT MET"}
    return table(
        ["ratio", "wall", "processor", "required", ""],
        [
            (each.name, each.wall, each.processor, f">= {each.limit:g}", words[each.met(clock)])
            for each in requirements
        ],
    )


def plain(about: dict[str, Any], parts: Sequence[Part], clock: str) -> dict[str, Any]:
    """The same as data."""
    return {
        **about,
        "clock": clock,
        "parts": {part.title: part.data for part in parts},
        "requirements": [
            {**asdict(each), "met": each.met(clock)} for part in parts for each in part.requirements
        ],
        "notes": [note for part in parts for note in part.notes],
    }


if __name__ == "__main__":
    print(json.dumps({package: _version(package) for package in sys.argv[1:]}))
