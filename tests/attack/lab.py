"""Commands in processes of their own that may be killed at an exact moment.

The laboratory forks, because importing torch for each of hundreds of attempts would take longer
than they do.
"""

from __future__ import annotations

import importlib
import itertools
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from fog import envs
from fog.cli import main
from fog.errors import UserError
from fog.settings import config_file
from fog.settings.config import Config
from tests.attack.outcomes import LOST, REFUSED, SURVIVED, TRACEBACK, WRONG, Verdict
from tests.training import assert_same_run, tiny

SETTINGS: dict[str, Any] = {
    "steps": 150,
    "checkpoint_every": 40,
    "window_steps": 50,
    "eval_every": 75,
    "log_every": 30,
    "capacity": 100,
    "reset_steps": (90,),
    "expansion_updates": (30,),
    "probes": ("sample_counts", "dormancy:per_window=3"),
}
_WRITES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
_LIMIT = 300
_NEEDED = (
    "diagnostics.commands.compare",
    "diagnostics.runs.export",
    "diagnostics.probes.dormancy",
    "diagnostics.probes.sample_counts",
    "fog.cli.train",
    "fog.training.run",
    "pyarrow.parquet",
)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (-9 if it was killed) and what it printed."""

    code: int
    out: str
    err: str

    def complaint(self) -> Verdict | None:
        """A traceback or an exit code that nobody documented; None if neither."""
        if "Traceback" in self.err or self.code not in (0, 1, 2, 3, 75, 130):
            return TRACEBACK, f"exit code {self.code}: {' / '.join(self.err.splitlines()[-2:])}"
        return None

    def refusal(self) -> Verdict:
        """What a command that did not end well said, which must be one line."""
        lines = [line for line in self.err.splitlines() if line.startswith("fog: ")]
        if len(lines) == 1:
            return REFUSED, lines[0]
        return TRACEBACK, f"exit code {self.code} without one line: {self.err[-200:]!r}"


class Lab:
    """A folder for attempts, a seed for chances, and runs that nobody disturbed."""

    def __init__(self, home: Path, seed: int = 2026) -> None:
        self.home = home
        # What a child needs is imported once, here: they are hundreds.
        envs.make(self.config("whole").run.known_task(), 0).close()
        for name in _NEEDED:
            importlib.import_module(name)
        self.random = Random(seed)
        self._numbers = itertools.count()
        self.whole = self.train(self.config("whole"))
        """A run from beginning to end; `changes` is how often it changed the disk."""
        self.other = self.train(self.config("whole", seed=1))
        counted = self.config("counted")
        told = home / "changes"
        self.fork(self.command(counted), watch=Path(counted.runtime.out), count_into=told)
        self.changes = int(told.read_text())

    def config(self, folder: str | Path, **changes: Any) -> Config:
        """The config of the runs under attack, below a folder of the laboratory."""
        return tiny(self.home / folder, **{**SETTINGS, **changes})

    def fresh(self) -> Path:
        """A folder that was not there before."""
        path = self.home / f"case{next(self._numbers)}"
        path.mkdir()
        return path

    def command(self, config: Config, *more: str) -> list[str]:
        """The command line that trains a config, whose file lies beside the runs."""
        path = Path(config.runtime.out).with_name(Path(config.runtime.out).name + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(config_file.to_yaml(config))
        return ["train", "--config", str(path), *more]

    def train(self, config: Config) -> Path:
        """An undisturbed run."""
        ended = self.fork(self.command(config))
        assert ended.code == 0, ended
        return run_of(Path(config.runtime.out), config.run.seed)

    def fork(
        self,
        argv: Sequence[str],
        *,
        kill_at: int | None = None,
        kill_after: float | None = None,
        watch: Path | None = None,
        count_into: Path | None = None,
    ) -> Ended:
        """Run a command of `fog` in a process of its own.

        Args:
            argv: the command line.
            kill_at: kill it before its so many-th change of a file below `watch`.
            kill_after: kill it after so many seconds.
            watch: the folder whose changes count.
            count_into: a file to write the number of changes to.
        """
        streams = [self.home / f"stream{next(self._numbers)}" for _ in range(2)]
        child = os.fork()
        if child == 0:
            _become(argv, streams, kill_at, watch, count_into)
        code = _wait(child, kill_after)
        texts = [path.read_text(errors="replace") for path in streams]
        for path in streams:
            path.unlink()
        return Ended(code, *texts)

    def resumed(self, config: Config, whole: Path | None = None) -> Verdict:
        """Go on with a run after an attack, and compare it with the undisturbed one."""
        run = run_of(Path(config.runtime.out), config.run.seed)
        begun = (run / "config.yaml").exists()
        if begun and '"status": "finished"' in _text(run / "manifest.json"):
            return same(whole or self.whole, run)
        ended = self.fork(self.command(config, *(["--resume"] if begun else [])))
        if (bad := ended.complaint()) is not None:
            return bad
        return same(whole or self.whole, run) if ended.code == 0 else ended.refusal()


def run_of(out: Path, seed: int = 0) -> Path:
    """The run directory of the attacked task below a folder."""
    return out / "gym-Pendulum-v1" / "fog" / f"seed{seed}"


def same(whole: Path, run: Path) -> Verdict:
    """Whether two runs are equal, bit for bit, with their probe tables."""
    try:
        assert_same_run(whole, run)
        first, second = (_tables(home) for home in (whole, run))
        assert first == second, f"probe tables differ: {sorted(first)} {sorted(second)}"
    except (AssertionError, OSError, IndexError, KeyError, ValueError) as error:
        return WRONG, " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return SURVIVED, ""


def _tables(run: Path) -> dict[str, bytes]:
    found = (path for path in (run / "probes").glob("*/*") if path.is_file())
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in found}


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def clear(folder: Path) -> None:
    """Remove what an attempt left, so that hundreds of them fit on the disk."""
    shutil.rmtree(folder, ignore_errors=True)


def lost(before: dict[str, bytes], run: Path, damaged: str) -> Verdict | None:
    """Files of a refused run that are gone or changed, but for the damaged one."""
    for name, raw in before.items():
        path = run / name
        if name in (damaged, "manifest.json", ".lock") or name.startswith("probes/"):
            continue
        if not path.is_file() or path.read_bytes() != raw:
            return LOST, f"{name} was removed or changed by a refused resume"
    return None


def _become(
    argv: Sequence[str],
    streams: list[Path],
    kill_at: int | None,
    watch: Path | None,
    count_into: Path | None,
) -> None:
    """In the child: run the command and never return."""
    for number, path in enumerate(streams, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    changes = 0
    home = os.fspath(watch) if watch is not None else None

    def note(event: str, args: tuple[Any, ...]) -> None:
        nonlocal changes
        if home is None or not _changes(event, args, home):
            return
        if changes == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        changes += 1

    code = 70
    try:
        sys.addaudithook(note)
        code = main(argv)
        home = None
        if count_into is not None:
            count_into.write_text(str(changes))
    except UserError as error:
        sys.stderr.write(f"fog: {error}\n")
        code = error.exit_code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _changes(event: str, args: tuple[Any, ...], home: str) -> bool:
    """Whether an audit event says that something below `home` is about to change."""
    if event == "open":
        path, mode, flags = args
        writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
        if not writes and not (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)):
            return False
    elif event in _WRITES:
        path = args[0]
    else:
        return False
    return isinstance(path, str | os.PathLike) and os.fspath(path).startswith(home)


def _wait(child: int, kill_after: float | None) -> int:
    began = time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        passed = time.monotonic() - began
        if passed > _LIMIT or (kill_after is not None and passed > kill_after):
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
