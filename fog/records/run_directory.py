"""A run directory: where one run's config, tables and checkpoints live, and its lock.

<out>/<task>/<variant>/seed<k>/
    config.yaml manifest.json evals.csv train.csv events.csv probes/ checkpoint/ tensorboard/
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from fog.errors import UserError
from fog.records import checkpoint
from fog.records.ledger import sealed
from fog.records.runtime import RUNTIME
from fog.records.statuses import Status
from fog.settings import config_file, tasks
from fog.settings.config import Config
from fog.system.text import shown


class BusyError(UserError):
    """Another process is writing the run. Nothing is wrong: the same command may work later."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h


def path_of(config: Config) -> Path:
    """The directory of the run that a config describes."""
    run = config.run
    return Path(config.runtime.out) / tasks.get(run.task).slug / run.variant / f"seed{run.seed}"


class RunDirectory:
    """One run's directory, locked against a second writer while it is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_path = path / "config.yaml"
        self.manifest_path = path / "manifest.json"
        self.evals_path = path / "evals.csv"
        self.train_path = path / "train.csv"
        self.events_path = path / "events.csv"
        self.probes_path = path / "probes"
        self.checkpoint_path = path / "checkpoint"
        self.tensorboard_path = path / "tensorboard"
        self._lock: int | None = None

    @classmethod
    def create(cls, config: Config) -> RunDirectory:
        """Make and lock the directory of a new run, with its config in it."""
        directory = cls(path_of(config))
        try:
            directory.path.mkdir(parents=True, exist_ok=True)
            # Locked before it looks: of two that start at once, the second sees the first's run.
            directory.lock()
            directory._refuse_taken(config)
            write_atomically(directory.config_path, config_file.to_yaml(config))
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"cannot write run directory {directory.path}: {reason}") from None
        return directory

    def _refuse_taken(self, config: Config) -> None:
        self._refuse_headless()
        if not self.holds_run() or self.stillborn():
            return
        self.unlock()
        status = self.manifest().get("status", "unfinished")
        difference = self.difference(config)
        told = f"{self.path} already holds a run ({'; '.join(filter(None, (status, difference)))})"
        if status == "finished":
            raise UserError(f"{told} that cannot be lengthened: choose another out or seed")
        python = "" if difference else " (in Python `resume=True`)"
        raise UserError(
            f"{told}: continue it with `{self.resuming()}`{python}, or choose another out or seed"
        )

    def _refuse_headless(self) -> None:
        """Refuse a run that has lost its config: a new start would overwrite it."""
        tables = (self.evals_path, self.train_path, self.events_path, self.probes_path)
        left = [path.name for path in (*tables, self.checkpoint_path) if path.exists()]
        if left and not self.holds_run():
            self.unlock()
            raise UserError(
                f"{self.path} holds {left[0]} of a run, but not its config.yaml: put that back "
                "to continue it, or choose another out or seed"
            )

    @classmethod
    def reopen(cls, config: Config) -> RunDirectory:
        """Lock the directory of an earlier run with the settings of `config`."""
        directory = cls(path_of(config))
        directory._refuse_headless()
        if not directory.holds_run():
            raise UserError(
                f"nothing to resume in {directory.path}: start it without `--resume` (in Python "
                "without `resume=True`)"
            )
        directory.lock()
        if difference := directory.difference(config):
            directory.unlock()
            raise UserError(
                f"cannot resume {directory.path}: {difference}; continue it with "
                f"`{directory.resuming()}`, or choose another out or seed"
            )
        return directory

    def resuming(self) -> str:
        """The command that continues the run here, whatever flags it was started with."""
        out = self.path.parents[2]
        flags = ["--config", str(self.config_path), "--out", str(out), "--resume"]
        return shlex.join(["fog", "train", *flags])

    def holds_run(self) -> bool:
        """Whether a run was started here."""
        try:
            return self.config_path.exists()
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror}") from None

    def difference(self, config: Config) -> str | None:
        """The first setting in which the run here is another one than `config`; None if equal.

        Where and how it runs may change between sittings; what is computed may not.
        """
        now = config.flat()
        same = self.config().replace(**{name: now[name] for name in RUNTIME})
        if same == config:
            return None
        name, was = next((k, v) for k, v in same.flat().items() if now[k] != v)
        return f"it was started with {name} = {was}, now {name} = {now[name]}"

    def config(self) -> Config:
        """The config the run was started with; settings that came later have their defaults."""
        settings = config_file.read_settings(self.config_path)
        if settings.get("sampler") == "cuer":
            # Before it was a setting, CUER's quota was that of a whole environment step.
            settings.setdefault("cuer_quota", "step")
        return Config.from_flat(settings)

    def lock(self) -> None:
        """Lock the directory for this process; released when the process ends, however it ends."""
        try:
            handle = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(f"cannot lock {self.path / '.lock'}: {error.strerror}") from None
        # A few tries, because `locked` of another process holds the lock for an instant.
        for pause in (0.05, 0.2, 0.5, None):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if pause is not None:
                    time.sleep(pause)
            else:
                self._lock = handle
                return
        os.close(handle)
        raise BusyError(f"{self.path} is being written by another process")

    def locked(self) -> bool:
        """Whether a process, this one included, has the directory open for writing."""
        try:
            handle = os.open(self.path / ".lock", os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise UserError(f"cannot read {self.path / '.lock'}: {error.strerror}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    def unlock(self) -> None:
        """Let the directory go."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def manifest(self) -> dict[str, Any]:
        """The current manifest; empty if the run has not written one yet."""
        try:
            document = json.loads(self.manifest_path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"cannot read {self.manifest_path}: {error}") from None
        if not isinstance(document, dict):
            raise UserError(f"cannot read {self.manifest_path}: it holds no entries")
        if document.get("status", "running") not in get_args(Status):
            status = shown(document["status"])
            raise UserError(f"cannot read {self.manifest_path}: no run has the status {status}")
        return document

    def stillborn(self) -> bool:
        """Whether the run failed before its first step, for example because a package was missing.

        Never if it has a checkpoint: then something can be resumed, whatever the manifest says.
        """
        manifest = self.manifest()
        failed = manifest.get("status") == "failed" and manifest.get("env_step") == 0
        return failed and not checkpoint.candidates(self.checkpoint_path)

    def update_manifest(self, **entries: Any) -> None:
        """Set entries of the manifest, atomically."""
        document = self.manifest() | entries | {"updated": timestamp()}
        write_atomically(self.manifest_path, json.dumps(sealed(document), indent=2) + "\n")


def timestamp() -> str:
    """The time now, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_atomically(path: Path, text: str) -> None:
    """Replace a small file so that a reader sees the old or the new one, never half of it."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        # Without it, a machine that loses power may keep the new name and not the content.
        os.fsync(file.fileno())
    partial.replace(path)
