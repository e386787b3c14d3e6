"""How a sweep is shown: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

from fog.sweep.entry import Entry, State, Tally
from fog.sweep.sweep import View
from fog.system.text import plain

LINE_SECONDS = 30.0
ORDER: tuple[State, ...] = (
    "running",
    "failed",
    "queued",
    "busy",
    "interrupted",
    "diverged",
    "waiting",
    "finished",
)
"""Most telling first: what does not fit on the screen is cut from the end."""


def duration(seconds: float | None) -> str:
    """A time to read at a glance: 42 s, 3:05, 7:30 h, 12 d; a dash if it is unknown."""
    if seconds is None:
        return "-"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    if whole < 48 * 3600:
        return f"{whole // 3600}:{whole % 3600 // 60:02d} h"
    return f"{whole / 86400:.0f} d"


def overall(tally: Tally) -> str:
    """The whole sweep in one line."""
    counts = tally.counts()
    states = ", ".join(f"{counts[state]} {state}" for state in ORDER if counts[state])
    return (
        f"{len(tally.entries)} runs, {tally.share:.0%} done, {duration(tally.seconds)} passed, "
        f"{duration(tally.seconds_left)} left: {states}"
    )


def number(value: float | None) -> str:
    """A return or a rate, short."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


class Lines:
    """A line for every change, and a summary every half minute."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last = time.monotonic()

    def changed(self, entry: Entry) -> None:
        """Say what became of a run."""
        shown = entry.progress.last_return
        note = f": {entry.reason}" if entry.reason else ""
        if entry.state in ("finished", "diverged") and shown is not None:
            note = f": return {number(shown)}"
        again = "again " if entry.state == "waiting" and entry.reason else ""
        self.say(f"{again}{entry.state} {entry.job.label}{note}")

    def tick(self, tally: Tally) -> None:
        """Print a summary now and then."""
        if time.monotonic() - self._last >= LINE_SECONDS:
            self._last = time.monotonic()
            self.say(overall(tally))

    def say(self, line: str) -> None:
        """Print a line."""
        print(plain(line), file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing to tidy."""


def view() -> View:
    """A table on a terminal, plain lines elsewhere."""
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from fog.sweep.table import Table

        return Table()
    return Lines(sys.stderr)
