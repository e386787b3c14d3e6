"""How far a run has come, read from the ends of its tables."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

_TAIL = 1 << 14
"""Bytes read from the end of a table: many rows, however long the table has grown."""

_PRIMING = re.compile(r": priming (\d+)/\d+ updates")
"""What a run says in its log while it is primed; its tables stand still then."""


@dataclass(frozen=True)
class Progress:
    """What a run has written so far."""

    env_step: int = 0
    steps_per_second: float | None = None
    last_return: float | None = None
    """Mean return of the last evaluation."""
    primed: int = 0
    """Updates of a priming that is under way."""


def read(directory: Path) -> Progress:
    """The progress of the run in `directory`; rows that are still being written do not count."""
    step: float = 0
    rate = None
    if rows := _last_rows(directory / "train.csv"):
        step = _number(rows[-1].get("env_step")) or 0
        rate = _number(rows[-1].get("steps_per_second"))
    evaluations = _last_rows(directory / "evals.csv")
    returns = [
        value
        for row in evaluations
        if row.get("env_step") == evaluations[-1].get("env_step")
        and (value := _number(row.get("return"))) is not None
    ]
    mean = sum(returns) / len(returns) if returns else None
    return Progress(int(step), rate, mean, _primed(directory / "log.txt"))


def last_line(log: Path) -> str:
    """The last line of a log that says something, for a report in one line."""
    lines = [line.strip() for line in _tail(log).splitlines()]
    return next((line for line in reversed(lines) if line), "")


def _primed(log: Path) -> int:
    told = _PRIMING.search(last_line(log))
    return int(told[1]) if told else 0


def _last_rows(path: Path) -> list[dict[str, str]]:
    """The last complete rows of a table without quoted cells, by column; none without a file."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            header = file.readline()
    except OSError:
        return []
    columns = header.rstrip("\n").split(",")
    *lines, _unfinished = _tail(path).split("\n")
    rows = [line.split(",") for line in lines if line + "\n" != header]
    return [dict(zip(columns, row, strict=True)) for row in rows if len(row) == len(columns)]


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL))
            if size > _TAIL:
                file.readline()
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None
