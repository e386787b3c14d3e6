"""Slurm's own commands: the options of sbatch, and what squeue says."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Sequence
from typing import Any

from fog.errors import UserError

WAITING = frozenset(
    {"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
)
"""States of a job that will run, or run again."""
ON_A_NODE = frozenset(
    {"COMPLETING", "CONFIGURING", "RESIZING", "RUNNING", "SIGNALING", "STAGE_OUT", "STOPPED"}
    | {"SUSPENDED"}
)

_OURS = {
    "array": "--jobs",
    "time": "--time",
    "cpus-per-task": "--cpus-per-run",
    "gpus-per-node": "--gpus-per-run",
    "mem": "--memory-per-run",
}
_FIXED = frozenset({"error", "job-name", "open-mode", "output", "requeue", "signal"})


def minutes_of(text: str) -> int:
    """Slurm's notation of a time limit in minutes: M, M:S, H:M:S, D-H, D-H:M or D-H:M:S.

    Raises:
        UserError: it is none of these, or less than a minute.
    """
    found = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?", text)
    if found is None:
        raise UserError(f"--time {text}: write a time as 4:00:00, 1-12:00:00 or minutes")
    days, *rest = found.groups()
    parts = [int(part) for part in rest if part is not None]
    if days is not None:
        hours, minutes, seconds = (*parts, 0, 0, 0)[:3]
    elif len(parts) == 3:
        hours, minutes, seconds = parts
    else:
        hours, minutes, seconds = 0, parts[0], (*parts, 0)[1]
    total = math.ceil(((24 * int(days or 0) + hours) * 60 + minutes) + seconds / 60)
    if total < 1:
        raise UserError(f"--time {text}: at least a minute")
    return total


def extras(items: Sequence[str]) -> dict[str, Any]:
    """Options of sbatch from `--slurm KEY=VALUE`; a KEY alone is a switch.

    Raises:
        UserError: an option that has its own flag, or that the engine sets.
    """
    found: dict[str, Any] = {}
    for item in items:
        key, given, value = item.partition("=")
        key = key.lstrip("-").replace("_", "-")
        if not re.fullmatch(r"[a-z][a-z-]*", key) or (given and not value):
            raise UserError(f"--slurm {item}: write KEY=VALUE with an option of sbatch as KEY")
        if key in _OURS:
            raise UserError(f"--slurm {item}: use {_OURS[key]}")
        if key in _FIXED:
            raise UserError(f"--slurm {item}: {key} is set by the sweep itself")
        found[key] = value if given else True
    return found


def query(name: str) -> list[str]:
    """The command that lists all jobs of a name, each element of an array separately."""
    return ["squeue", "-h", "-r", "-t", "all", f"--name={name}", "-o", "%i %T"]


def states(answer: str) -> dict[str, str]:
    """State of every job by its id, from what `query` printed."""
    return dict(line.split(maxsplit=1) for line in answer.splitlines())


def live(name: str) -> bool:
    """Whether jobs of that name wait or run.

    Raises:
        UserError: Slurm does not answer.
    """
    try:
        done = subprocess.run(query(name), capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"Slurm does not answer: {error}") from None
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["squeue failed"])[-1]
        raise UserError(f"Slurm does not answer: {said}")
    return any(state in WAITING | ON_A_NODE for state in states(done.stdout).values())


def largest_array() -> int:
    """The most elements that this cluster takes in one array."""
    try:
        command = ["scontrol", "show", "config"]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        shown = ""
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", shown, re.MULTILINE)
    # Indices start at 0 and must lie below the limit; 1001 is Slurm's own default.
    return max(1, int(found[1]) - 1 if found else 1000)
