"""Progress of a long run: a bar on a terminal, a line now and then in a log file."""

from __future__ import annotations

import sys
import threading
import time
from typing import TextIO, cast

from tqdm import tqdm

from fog.system.streams import Lasting
from fog.system.text import plain

_LOG_FIRST = 5.0
_LOG_INTERVAL = 25.0
"""Seconds to the first line of a log, and between lines."""
_BAR_INTERVAL = 0.5


class Reporter:
    """Where a run says how far it is. This one says nothing: for notebooks and libraries."""

    def advance(self, env_step: int, note: dict[str, str]) -> None:
        """`env_step` steps are made; `note` holds what else to show."""

    def prime(self, made: int, dose: int) -> None:
        """`made` of the `dose` priming updates are done; the environment is not stepped."""

    def say(self, line: str) -> None:
        """Print a line without tearing the bar."""

    def close(self) -> None:
        """Leave the terminal tidy."""


class _Dose:
    """How fast priming goes, and how long it has kept the steps waiting."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None
        self._last = 0.0

    def pause(self) -> float:
        """Seconds since the last call: not a time in which steps were made."""
        last, self._last = self._last, time.monotonic()
        return self._last - last if self._first else 0.0

    def told(self, made: int, dose: int) -> str:
        """Updates made; from the second call on their rate, and the time that the rest takes."""
        now = time.monotonic()
        if self._first is None:
            self._first = now, made
        began, first = self._first
        share = f"{made}/{dose} updates ({made / dose:.0%})"
        if made == first:
            return share
        rate = (made - first) / max(now - began, 1e-9)
        left = tqdm.format_interval((dose - made) / rate)
        return f"{share}, {rate:.0f} updates/s, {left} left"


class Bar(Reporter):
    """A tqdm bar with steps per second and the time left."""

    def __init__(self, total: int, initial: int, title: str, stream: TextIO) -> None:
        self._bar = tqdm(
            total=total,
            initial=initial,
            desc=title,
            unit="step",
            file=stream,
            dynamic_ncols=True,
            smoothing=0.05,
            mininterval=_BAR_INTERVAL,
        )
        self._dose = _Dose()
        self._shown = 0.0

    def advance(self, env_step: int, note: dict[str, str]) -> None:
        """Move the bar to `env_step`."""
        self._bar.set_postfix(note, refresh=False)
        self._bar.update(env_step - self._bar.n)

    def prime(self, made: int, dose: int) -> None:
        """Show the priming beside the bar, which does not move."""
        self._bar.last_print_t += self._dose.pause()
        told, now = self._dose.told(made, dose), time.monotonic()
        if now - self._shown >= _BAR_INTERVAL or made == dose:
            self._shown = now
            self._bar.set_postfix_str(f"priming {told}")

    def say(self, line: str) -> None:
        """Print above the bar."""
        self._bar.write(plain(line), file=self._bar.fp)

    def close(self) -> None:
        """Finish the bar's line."""
        self._bar.close()


class Lines(Reporter):
    """A first line soon and then two or three a minute, for logs that no terminal shows.

    They come from a thread: a compilation, an evaluation or a probe can take minutes, in which no
    step is made.
    """

    def __init__(self, total: int, initial: int, title: str, stream: TextIO) -> None:
        self._total = total
        self._initial = initial
        self._title = title
        self._stream = stream
        self._began = time.monotonic()
        self._due = self._began + _LOG_FIRST
        self._dose = _Dose()
        self._step = initial
        self._note: dict[str, str] = {}
        self._priming = ""
        self._lock = threading.RLock()
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="fog-progress", daemon=True).start()

    def advance(self, env_step: int, note: dict[str, str]) -> None:
        """Print a line if one is due or the run is at its end."""
        with self._lock:
            self._step, self._note, self._priming = env_step, note, ""
            self.tick(now=env_step >= self._total)

    def prime(self, made: int, dose: int) -> None:
        """Print a line if one is due or the priming is at its end."""
        with self._lock:
            self._began += self._dose.pause()
            self._priming = self._dose.told(made, dose)
            self.tick(now=made == dose)

    def tick(self, *, now: bool = False) -> None:
        """Print how far the run is if a line is due, or `now`."""
        with self._lock:
            if time.monotonic() >= self._due or now:
                self._due = time.monotonic() + _LOG_INTERVAL
                self.say(f"{self._title}: {self._told()}")

    def _told(self) -> str:
        if self._priming:
            return f"priming {self._priming}"
        made = self._step - self._initial
        share = f"step {self._step}/{self._total} ({self._step / self._total:.0%})"
        if made <= 0:
            return f"{share}, starting"
        rate = made / max(time.monotonic() - self._began, 1e-9)
        left = tqdm.format_interval((self._total - self._step) / rate)
        notes = " ".join(f"{key}={value}" for key, value in self._note.items())
        return f"{share}, {rate:.1f} steps/s, {left} left, {notes}"

    def _watch(self) -> None:
        while not self._closed.wait(1.0):
            self.tick()

    def say(self, line: str) -> None:
        """Print a line."""
        print(plain(line), file=self._stream, flush=True)

    def close(self) -> None:
        """Print no more lines."""
        self._closed.set()


def reporter(total: int, initial: int, title: str, stream: TextIO | None = None) -> Reporter:
    """A bar on a terminal, plain lines elsewhere."""
    where = sys.stderr if stream is None else stream
    if where is None:  # closed from the start
        return Reporter()
    kind = Bar if where.isatty() else Lines
    # Training continues when nothing reads its output any more, even when called from Python.
    return kind(total, initial, title, cast(TextIO, Lasting(where, str)))
