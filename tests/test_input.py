"""Input that once ended in a traceback, kind by kind: one line now, and exit code 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fog.cli import main
from fog.cli.parser import integer
from fog.errors import ConfigError, UserError
from fog.records import checkpoint
from fog.records.run_directory import RunDirectory
from fog.settings.config_file import load_yaml
from fog.sweep import ray, sbatch
from fog.sweep.job import Job
from fog.sweep.progress import read
from tests.fog.cli.test_cli import TINY
from tests.training import tiny

RUN = "run: {task: gym:Pendulum-v1, %s}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("run: {variant: 2026-13-01}", "unknown variant '2026-13-01'"),
        ("run: {variant: 2026-01-01}", "unknown variant '2026-01-01'"),
        (RUN % f"steps: {'9' * 5000}", "is not a valid int"),
        (RUN % f"steps: {'9' * 400}", "is too large"),
        (RUN % f"steps: 0x{'F' * 5000}", "is too large"),
        (RUN % "scale: 1e400", "scale: must be finite"),
        ("? [a]\n: b", "a list or a mapping cannot be a name"),
        ("? {a: b}\n: c", "a list or a mapping cannot be a name"),
        (RUN % "steps: !!int x", "'x' is not a valid int"),
        (RUN % "steps: !!int ''", "'' is not a valid int"),
        (RUN % "steps: !!bool x", "'x' is not a valid bool"),
        (RUN % "steps: !!timestamp x", "could not determine a constructor"),
        (RUN % "steps: !!set {a}", "could not determine a constructor"),
        (RUN % "probes: [[a], [b]]", "probes: expected a list of texts"),
        ("lifecycle: {reset_steps: [[1], [2]]}\n" + RUN % "seed: 0", "expected a list of integers"),
        ("run: {task: null}", "task: expected text, got None"),
        ("run: {task: [a]}", "task: expected text, got ['a']"),
        ("run: {task: {a: b}}", "task: expected text"),
        (RUN % "variant: [a]", "variant: expected text"),
        (RUN % "scale: [1]", "scale: expected number"),
        ("runtime: {out: ''}\n" + RUN % "seed: 0", "out: expected a folder, got ''"),
        ('runtime: {out: "a\\0b"}\n' + RUN % "seed: 0", "out: expected a folder"),
        ("[" * 5000, "nested too deeply"),
        ("network: {width: 10000000}\n" + RUN % "seed: 0", "width: must be >= 1 and <= 65536"),
        (RUN % "steps: 10_000_000_000_000_000", "is too large"),
        (f"run: {{variant: {'a' * 5000}}}", "unknown variant 'aaa"),
    ],
)
def test_a_config(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text if "task" in text else f"{text}\n")
    task = [] if "task" in text else ["--task", "gym:Pendulum-v1"]
    assert main(["train", "--config", str(path), "--dry-run", *task]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and len(error) < 700


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["sweep", "--tasks", "cartpole-swingup", "--jobs", "inf"], "--jobs: invalid integer"),
        (["sweep", "--tasks", "cartpole-swingup", "--jobs", "9" * 400], "--jobs: invalid integer"),
        (
            ["sweep", "--tasks", "cartpole-swingup", "--seeds", "9" * 5000],
            "seeds: expected numbers",
        ),
        (["reproduce", "--seeds", "1e15"], "--seeds: at most 10000"),
        (["train", "--task", "gym:a\x1b[31m"], "unknown task 'gym:a\\x1b[31m'"),
        (["train", "--task", "gym:Pendulum-v1", "--steps", "1e400"], "--steps: expected integer"),
        (["train", "--task", "gym:Pendulum-v1", "--steps", "1e16"], "--steps: expected integer"),
        (["train", "--task", "gym:Pendulum-v1", "--replay-ratio", "1e16"], "replay_ratio: must be"),
        (["train", "--task", "gym:Pendulum-v1", "--out", ""], "out: expected a folder, got ''"),
        (["train", "--task", "gym:Pendulum-v1", "--out", "a" * 3000], "File name too long"),
        (["train", "--config", ""], "--config: not a valid path: ''"),
        (["compare", "--runs", ""], "--runs: not a valid path: '': it is empty"),
        (["compare", "--runs", "a" * 3000], "File name too long"),
        (["export", "--runs", ".", "--out", ""], "--out: not a valid path: ''"),
        (["report", "--out", "a\0b"], "embedded null"),
        (["report", "--out=--"], "argument --out: expected a value, got '--'"),
        (["figures", "--only", "a" * 3000 + ".ipynb"], "unknown notebook 'aaa"),
    ],
)
def test_a_command_line(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("fog: ") and said in lines[-1]
    assert max(map(len, lines)) < 700


@pytest.mark.parametrize(
    "task",
    [
        *(
            "gym:.a:b",
            "gym:a..b:c",
            "gym:..:x",
            "gym::x",
            "gym:a b:c",
            "gym:x",
            "gym:$x^{$",
            "gym:/",
        ),
        *("dmc:a-b", "dmc:-", "dmc:cheetah-", "dmc:../..-x", "mw:x", "mw:../..", "hb:x", "hb:.."),
    ],
)
def test_a_task_that_no_suite_has(task: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--task", task, "--dry-run", "--width", "4"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("fog: ") and error.count("\n") == 1


def test_integers_as_people_write_them() -> None:
    assert [integer(text) for text in ("100", "1_000", "1e5", "-3", "2.0")] == [
        *(100, 1000, 100_000, -3, 2)
    ]
    for text in ("1.5", "nan", "inf", "1e16", "x"):
        with pytest.raises(ValueError):
            integer(text)


def test_dates_are_text_and_numbers_are_numbers() -> None:
    text = "{a: 2026-01-01, b: 1e-5, c: 7, d: yes, e: ~, f: [1.5, x]}"
    expected = {"a": "2026-01-01", "b": 1e-5, "c": 7, "d": True, "e": None, "f": [1.5, "x"]}
    assert load_yaml(text, "here") == expected
    with pytest.raises(ConfigError, match="'a' appears twice"):
        load_yaml("{a: 1, a: 2}", "here")


def test_flags_of_engines() -> None:
    with pytest.raises(UserError, match="write a time"):
        sbatch.minutes_of("9" * 5000)
    for address in ("host:²", "host:99999", "host:"):
        with pytest.raises(UserError, match="give HOST:PORT"):
            ray._check_address(address)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    config = tiny(tmp_path)
    RunDirectory.create(config).unlock()
    return Job(config, (), tmp_path)


def test_a_lock_that_is_a_folder(job: Job) -> None:
    lock = job.directory / ".lock"
    lock.unlink()
    lock.mkdir()
    with pytest.raises(UserError, match=r"cannot lock .*: Is a directory"):
        RunDirectory.reopen(job.config)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_lock_without_permission(job: Job) -> None:
    (job.directory / ".lock").chmod(0)
    with pytest.raises(UserError, match=r"cannot lock .*: Permission denied"):
        RunDirectory.reopen(job.config)
    with pytest.raises(UserError, match=r"cannot read .*: Permission denied"):
        job.status()


def test_a_lock_that_may_not_be_opened(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for root, whom no permission stops."""

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    for look in (lambda: RunDirectory.reopen(job.config), job.status):
        with pytest.raises(UserError, match="Permission denied"):
            look()


@pytest.mark.parametrize(
    "text", ["[]", "3", "null", '{"status": []}', '{"status": "nice"}', "[" * 5000, "{", "\xff"]
)
def test_a_manifest_of_another_shape(text: str, job: Job) -> None:
    (job.directory / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(UserError, match=r"cannot read .*manifest\.json"):
        job.status()


@pytest.mark.parametrize(
    "seal",
    [
        *([], 3, None, {}, {"format": []}, {"format": 1}, {"format": 1, "files": []}),
        *({"format": 1, "files": {"a": 3}}, {"format": 1, "files": {"a": {"bytes": 1}}}),
    ],
)
def test_a_seal_of_another_shape(seal: object, tmp_path: Path) -> None:
    (tmp_path / "SEAL.json").write_text(json.dumps(seal))
    problem = checkpoint.verify(tmp_path)
    assert problem is not None and ("seal" in problem or "format" in problem)


def test_a_buffer_that_no_machine_has_memory_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*TINY, "--out", str(tmp_path), "--capacity", "1e15"]) == 2
    assert "fog: not enough memory: Unable to allocate" in capsys.readouterr().err


def test_progress_of_a_table_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_bytes(b"env_step,steps_per_second\ninf,nan\n")
    (tmp_path / "evals.csv").write_bytes(b"\xff\xfe,return\n1,2\n")
    assert read(tmp_path).env_step == 0


@pytest.mark.parametrize("locale", [{"LC_ALL": "POSIX"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_paths_beyond_ascii_in_a_plain_locale(locale: dict[str, str], tmp_path: Path) -> None:
    """Names of folders are bytes: they need not be text in the locale of the moment."""
    out = tmp_path / "größe-日本"
    environment = {**os.environ, "PYTHONCOERCECLOCALE": "0", **locale}
    for command in ([*TINY, "--out", str(out)], ["compare", "--runs", str(out)]):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "fog", *command],
            capture_output=True,
            timeout=120,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["report", "calibrate"])
def test_a_pipe_or_device_is_not_replaced_by_a_file(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page is put in the place of the old one: as root, that would also remove /dev/null."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    runs = str(Path(__file__).parent / "fixtures" / "runs")
    assert main([command, "--runs", runs, "--out", str(pipe)]) == 2
    streams = capsys.readouterr()
    assert "it is a device or a pipe" in streams.err and streams.err.count("\n") == 1
    assert pipe.is_fifo()


@pytest.mark.parametrize("command", ["report", "calibrate"])
def test_a_file_that_the_command_did_not_write_is_kept(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("precious\n")
    runs = str(Path(__file__).parent / "fixtures" / "runs")
    assert main([command, "--runs", runs, "--out", str(notes)]) == 2
    error = capsys.readouterr().err
    assert "exists and is not an earlier" in error and error.count("\n") == 1
    assert notes.read_text() == "precious\n"


def test_a_report_replaces_an_earlier_one(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    command = ["report", "--runs", str(Path(__file__).parent / "fixtures" / "runs"), "--out"]
    assert main([*command, str(out)]) == 0
    first = out.stat().st_ino
    assert main([*command, str(out)]) == 0 and out.stat().st_ino != first
