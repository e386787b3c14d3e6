"""What a sweep shows: a table that fits the terminal, or lines."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from fog.cli.sweepreport import roughly, spans
from fog.sweep.entry import Entry, Tally
from fog.sweep.plan import Block, Plan
from fog.sweep.progress import Progress
from fog.sweep.table import draw
from fog.sweep.view import Lines, duration, overall
from fog.training import console


def entries(seeds: int = 12) -> list[Entry]:
    tasks = ("humanoid-walk", "mw-pick-out-of-hole")
    block = Block(tasks, ("sac", "expanded-sac"), tuple(range(seeds)))
    found = [Entry(job) for job in Plan("x", (block,)).jobs({})]
    found[0].state, found[0].progress = "finished", Progress(1_000_000, 80.0, 912.3)
    found[1].state, found[1].progress = "running", Progress(250_000, 100.0, -1234.5)
    found[2].state, found[2].reason = "failed", "no such luck"
    return found


def drawn(width: int, height: int) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width).print(draw(Tally(entries()), width, height))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("height", [6, 24, 100])
def test_the_table_fits_the_terminal(width: int, height: int) -> None:
    lines = drawn(width, height)
    # The last line of a terminal is the cursor's.
    assert len(lines) == min(height - 1, 50)
    assert max(map(len, lines)) <= width


def test_the_running_runs_come_first_and_the_rest_is_counted() -> None:
    _, running, failed, _, left_out, whole = drawn(80, 7)
    assert " ".join(running.split()) == (
        "mw-pick-out-of-hole expanded-sac 0 running 25% 100 -1234 2:05 h"
    )
    assert "failed" in failed
    assert left_out == "... and 44 waiting, 1 finished"
    assert whole.startswith("48 runs, ")


def test_names_give_way_before_numbers_do() -> None:
    header, running, *_ = drawn(80, 24)
    assert " ".join(header.split()) == "task variant seed status done steps/s return left"
    assert "expanded-sac    0 running      25%     100   -1234  2:05 h" in running
    assert "━" not in running
    assert "━" in drawn(120, 24)[1]


def test_lines_tell_of_every_change() -> None:
    stream = io.StringIO()
    lines = Lines(stream)
    finished, running, failed, *_ = entries()
    for entry in (finished, running, failed):
        lines.changed(entry)
    failed.state = "waiting"
    lines.changed(failed)
    assert stream.getvalue().splitlines() == [
        f"finished {finished.job.label}: return 912",
        f"running {running.job.label}",
        f"failed {failed.job.label}: no such luck",
        f"again waiting {failed.job.label}: no such luck",
    ]


def test_the_whole_is_weighted_by_work() -> None:
    long, short = Plan("x", (Block(("humanoid-walk", "cartpole-swingup"), ("sac",)),)).jobs({})
    whole = Tally([Entry(long), Entry(short, state="finished")])
    assert whole.share == pytest.approx(short.weight / (short.weight + long.weight))
    assert "1 waiting, 1 finished" in overall(whole)
    assert whole.seconds_left is None


def test_times_as_people_read_them() -> None:
    shown = [duration(at) for at in (None, 4.4, 65, 3599, 3600, 90_000, 300_000)]
    assert shown == ["-", "4 s", "1:05", "59:59", "1:00 h", "25:00 h", "3 d"]
    assert [roughly(at) for at in (100, 1000, 10_000, 1e6)] == [
        "100 seconds",
        "17 minutes",
        "3 hours",
        "12 days",
    ]
    assert spans([3, 0, 1, 2, 7]) == "0-3, 7"


def test_a_run_that_is_being_primed_moves(tmp_path: Path) -> None:
    """100,000 updates on 200 steps, then 39,600 more: a sweep tells how far the first have come."""
    settings = {"steps": 20_000, "warmup_steps": 200, "replay_ratio": 2, "priming_updates": 100_000}
    settings["batch_size"] = 128
    block = Block(("HalfCheetah-v4",), ("plain-sac",), (0,), {**settings, "out": str(tmp_path)})
    (job,) = Plan("x", (block,)).jobs({})
    job.directory.mkdir(parents=True)
    entry = Entry(job, "running")
    entry.refresh()
    assert entry.share == 0
    with job.log.open("w") as log:
        reporter = console.Lines(20_000, 0, "HalfCheetah-v4", log)
        reporter.prime(35_000, 100_000)
        reporter.tick(now=True)
        reporter.close()
    entry.refresh()
    assert entry.share == pytest.approx(35_000 / 140_000)
    # The row at the end of the priming: hours per step, which say nothing of the others.
    table = job.directory / "train.csv"
    table.write_text("env_step,steps_per_second\n200,0.5\n")
    entry.refresh()
    assert entry.share == pytest.approx((100_000 + 2 * 200) / 140_000)
    assert entry.seconds_left is None
    table.write_text("env_step,steps_per_second\n10000,100\n")
    entry.refresh()
    assert entry.share == pytest.approx(120_000 / 140_000)
    assert entry.seconds_left == pytest.approx(100, abs=5)
