"""Progress while the environment stands still."""

from __future__ import annotations

import io

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
    assert len(said) == 4
    assert said[0] == "run: priming 2100/10000 updates (21%), 100 updates/s, 01:19 left"
    assert said[-1] == "run: priming 10000/10000 updates (100%), 100 updates/s, 00:00 left"
    clock.now += 40
    lines.advance(500, {})
    # 10 s before the priming and 41 after it.
    assert "9.8 steps/s, 02:33 left" in stream.getvalue().splitlines()[-1]


def test_a_dose_of_one_portion_has_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    stream = io.StringIO()
    console.Lines(2000, 0, "run", stream).prime(16, 16)
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
