"""What a run asks of a cluster."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from fog.cli.parser import Parser
from fog.errors import UserError
from fog.sweep.request import Request, add_options, request_of
from tests.training import tiny


def _options(*flags: str) -> argparse.Namespace:
    parser = Parser("sweep", "")
    add_options(parser)
    return parser.parse(flags)


def test_what_the_user_says_is_asked_for() -> None:
    flags = ("--cpus-per-run", "3", "--gpus-per-run", "0.25", "--memory-per-run", "1.5")
    config = tiny(Path("nowhere"))
    assert request_of(_options(*flags), config) == Request(3, 0.25, 1_500_000_000)


def test_processors_are_the_threads_of_the_run() -> None:
    config = tiny(Path("nowhere"), threads=4)
    assert request_of(_options("--memory-per-run", "1"), config).cpus == 4


def test_memory_is_estimated_and_grows_with_the_buffer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    small, large = (
        request_of(_options(), tiny(tmp_path, steps=at, capacity=at)).memory_bytes
        for at in (300, 10_000_300)
    )
    per_transition = 4 * (3 + 1 + 2) + 4
    assert large - small == pytest.approx(1.25 * 10_000_000 * per_transition, rel=0.01)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--cpus-per-run", "0"), "--cpus-per-run: must be at least 1, got 0"),
        (("--gpus-per-run", "-1"), "--gpus-per-run: must be at least 0"),
        (("--memory-per-run", "0"), "--memory-per-run: must be at least 0.01"),
    ],
)
def test_nonsense_is_refused(flags: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        request_of(_options(*flags), tiny(Path("nowhere")))


def test_a_run_on_a_graphics_card_must_ask_for_one() -> None:
    config = tiny(Path("nowhere"), device="cuda")
    with pytest.raises(UserError, match="add --gpus-per-run 1"):
        request_of(_options(), config)
    assert (
        request_of(_options("--gpus-per-run", "0.5", "--memory-per-run", "1"), config).gpus == 0.5
    )
