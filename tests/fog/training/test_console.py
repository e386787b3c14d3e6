"""Progress while the environment stands still."""

from __future__ import annotations

import io
import threading
import time
from itertools import pairwise

import pytest

from fog.training import console


class Clock:
    """A clock that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(console.time, "monotonic", lambda: self.now)


def test_lines_tell_the_time_that_priming_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, stream = Clock(monkeypatch), io.StringIO()
    lines = console.Lines(2000, 0, "run", stream)
    clock.now += 10
    for made in range(100, 10_001, 100):
        lines.prime(made, 10_000)
        clock.now += 1
    said = stream.getvalue().splitlines()
    lines.close()
    assert len(said) == 5
    assert said[0] == "run: priming 100/10000 updates (1%)"
    assert said[1] == "run: priming 2600/10000 updates (26%), 100 updates/s, 01:14 left"
    assert said[-1] == "run: priming 10000/10000 updates (100%), 100 updates/s, 00:00 left"
    clock.now += 40
    lines.advance(500, {})
    # 10 s before the priming and 41 after it.
    assert "9.8 steps/s, 02:33 left" in stream.getvalue().splitlines()[-1]


def test_a_dose_of_one_portion_has_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    stream = io.StringIO()
    lines = console.Lines(2000, 0, "run", stream)
    lines.prime(16, 16)
    lines.close()
    assert stream.getvalue() == "run: priming 16/16 updates (100%)\n"


def test_a_bar_shows_priming_and_keeps_the_rate_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, stream = Clock(monkeypatch), io.StringIO()
    bar = console.Bar(2000, 0, "run", stream)
    before = bar._bar.last_print_t
    for made in range(100, 1001, 100):
        bar.prime(made, 1000)
        clock.now += 1
    assert "priming 500/1000 updates (50%), 100 updates/s, 00:05 left" in stream.getvalue()
    assert bar._bar.last_print_t == before + 9
    bar.close()


def test_a_log_has_a_line_within_ten_seconds_and_one_every_half_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also while nothing advances: the thread calls `tick` every second."""
    clock, stream = Clock(monkeypatch), io.StringIO()
    lines = console.Lines(2000, 0, "run", stream)
    times = []
    for second in range(200):
        clock.now += 1
        before = len(stream.getvalue())
        if 100 < second < 120:
            lines.advance(second, {"loss": "1"})
        lines.tick()
        times += [second] if len(stream.getvalue()) > before else []
    lines.close()
    assert times[0] < 10
    assert max(b - a for a, b in pairwise(times)) < 30
    said = stream.getvalue().splitlines()
    assert said[0] == "run: step 0/2000 (0%), starting"
    assert said[-1].startswith("run: step 119/2000 (6%), 0.7 steps/s")


def test_the_thread_speaks_for_a_run_that_makes_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_LOG_FIRST", 0.0)
    stream = io.StringIO()
    lines = console.Lines(2000, 0, "run", stream)
    deadline = time.monotonic() + 30
    while not stream.getvalue() and time.monotonic() < deadline:
        time.sleep(0.05)
    lines.close()
    assert stream.getvalue() == "run: step 0/2000 (0%), starting\n"
    assert not any(thread.name == "fog-progress" for thread in _settled())


def _settled() -> list[threading.Thread]:
    for thread in threading.enumerate():
        if thread.name == "fog-progress":
            thread.join(timeout=10)
    return threading.enumerate()
