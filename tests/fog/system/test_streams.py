"""Closed, full and broken output: training goes on, nothing ends in a traceback."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fog.cli import main
from fog.records.run_directory import RunDirectory
from fog.system import streams
from fog.system.text import LINE, VALUE, one_line, plain, shown
from fog.training import run as training
from tests.fog.cli.test_cli import TINY
from tests.training import tiny

FOG = shlex.join([sys.executable, "-P", "-m", "fog"])
EXIT_CODE = "${PIPESTATUS[0]}"


def shell(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The script in bash; its exit code is its last command's."""
    command = ["bash", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd)


def status(out: Path) -> object:
    (config,) = out.rglob("config.yaml")
    return RunDirectory(config.parent).manifest()["status"]


@pytest.mark.parametrize(
    "streams",
    [
        "2>&1 | head -1",
        "2>&1 | true",
        ">&- 2>&-",
        "<&- >&- 2>&-",
        ">/dev/full 2>/dev/full",
        "2>/dev/full",
    ],
)
def test_training_outlives_its_output(streams: str, tmp_path: Path) -> None:
    train = shlex.join([*TINY, "--out", "runs"])
    done = shell(f"{FOG} {train} {streams}; exit {EXIT_CODE}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert status(tmp_path / "runs") == "finished"
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_a_script_that_trains_outlives_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/full").open("w") as full:
        for seed, stream in enumerate((full, None)):
            monkeypatch.setattr(sys, "stderr", stream)
            assert training.train(tiny(tmp_path, seed=seed), quiet=False).status == "finished"
        monkeypatch.undo()
        streams.Lasting(full, str).finish()


def test_a_closed_stream_is_not_taken_by_a_file_of_the_run(tmp_path: Path) -> None:
    """The next file opened would be number 1, and what a library prints would go into it."""
    code = (
        "import os, sys; from fog.system import streams\n"
        "with streams.lasting():\n"
        "    file = open('table.csv', 'w')\n"
        "    os.write(1, b'chatter of a library')\n"
        "    assert os.get_inheritable(1)\n"
        "assert open('table.csv').read() == ''"
    )
    command = f"{shlex.join([sys.executable, '-P', '-c', code])} >&- 2>err"
    shell(command, tmp_path)
    assert (tmp_path / "err").read_text() == ""


LISTINGS = ["tasks", "train --help"]


@pytest.mark.parametrize("listing", LISTINGS)
@pytest.mark.parametrize("streams", ["| true", "| head -1", ">&-"])
def test_a_listing_ends_quietly_when_nobody_reads_it(
    listing: str, streams: str, tmp_path: Path
) -> None:
    done = shell(f"{FOG} {listing} {streams}; exit {EXIT_CODE}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_listing_that_cannot_be_written_is_no_success(listing: str, tmp_path: Path) -> None:
    done = shell(f"{FOG} {listing} >/dev/full", tmp_path)
    said = "fog: cannot write to standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_an_error_keeps_its_exit_code_where_nobody_hears_it(tmp_path: Path) -> None:
    for silence in ("2>&-", "2>/dev/full"):
        assert shell(f"{FOG} train --task nope {silence}", tmp_path).returncode == 2


def test_many_lines_are_dropped_and_kept_plain_like_one() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stream = streams.Lasting(os.fdopen(writer, "w", buffering=1), plain)
    stream.writelines(["one\n", "two\n"])
    assert stream.lost is not None
    stream.finish()
    kept = io.StringIO()
    streams.Lasting(kept, plain).writelines(["\x1b[2J\n"])
    assert kept.getvalue() == "\\x1b[2J\n"


def test_names_do_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]0;owned\x07\x9b2J\u202e"
    run = tmp_path / "task" / evil / "seed0"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text("")
    assert main(["compare", "--runs", str(tmp_path)]) == 0
    assert main(["train", "--task", "cartpole-swingup", "--resume", "--out", evil]) == 2
    assert main(["compare", "--runs", evil]) == 2
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert not set("\x1b\x07\x9b\u202e") & set(text)
        assert "\\x1b]0;owned" in text


def test_text_of_others_is_cut_and_spelt_out() -> None:
    assert plain("größer\tals\n") == "größer\tals\n"
    assert plain("\x1b[31m\udcff\x00") == "\\x1b[31m\\udcff\\x00"
    assert one_line("two\n lines") == "two lines"
    long = one_line("a" * 5000 + "the fix")
    assert len(long) <= LINE and long.endswith("the fix")
    assert len(shown("x" * 5000)) <= VALUE
    assert shown(10**9000) == "a number of 29898 bits"
