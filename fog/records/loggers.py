"""Copies of the metrics for TensorBoard and W&B. The run's own tables are the truth."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from fog.errors import UserError
from fog.records.run_directory import RunDirectory
from fog.settings.config import Config
from fog.system.extras import install


class MetricLogger(Protocol):
    """A place that metrics are copied to."""

    def log(self, section: str, env_step: int, values: Mapping[str, Any]) -> None:
        """Copy one row: numbers only, named `section/column`."""

    def close(self) -> None:
        """Flush and close."""


class TensorBoard:
    """Event files under the run directory."""

    def __init__(self, directory: Path, resumed_at: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # Also from step 0: a run that was killed before its first checkpoint starts over.
        self._writer = SummaryWriter(str(directory), purge_step=resumed_at + 1)

    def log(self, section: str, env_step: int, values: Mapping[str, Any]) -> None:
        """Write scalars."""
        for name, value in _numbers(values).items():
            self._writer.add_scalar(f"{section}/{name}", value, env_step)

    def close(self) -> None:
        """Flush the event file."""
        self._writer.close()


class Told:
    """Which rows W&B has been given, over all sittings: by section the last step, and its rows.

    A resumed run repeats the rows after its checkpoint, and W&B cannot take rows back.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        known: Any = {"rows": 0, "last": {}}
        try:
            known = json.loads(path.read_text()) if path.exists() else known
            self.rows = int(known["rows"])
            self._last: dict[str, list[int]] = {**known["last"]}
        except (OSError, ValueError, KeyError, TypeError):
            raise UserError(f"{path} is damaged: delete it; W&B may then get rows twice") from None
        self._now: dict[str, list[int]] = {}

    def add(self, section: str, env_step: int) -> bool:
        """Whether the row is new. It counts as told from now on: better one missing than two."""
        before, count = self._now.get(section, [-1, 0])
        place = [env_step, count + 1 if env_step == before else 1]
        self._now[section] = place
        if place <= self._last.get(section, [-1, 0]):
            return False
        self._last[section] = place
        self.rows += 1
        self._path.parent.mkdir(exist_ok=True)
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps({"rows": self.rows, "last": self._last}))
        fresh.replace(self._path)
        return True


class WeightsAndBiases:
    """A W&B run, offline unless WANDB_MODE says otherwise: clusters have no internet."""

    def __init__(self, directory: RunDirectory, config: Config, project: str) -> None:
        run = config.run
        self._run = _wandb().init(
            project=project,
            dir=str(directory.path),
            name=f"{run.task}/{run.variant}/seed{run.seed}",
            id=re.sub(r"[^\w.-]", "-", str(directory.path.resolve()))[-120:].strip("-"),
            resume="allow",
            mode=os.environ.get("WANDB_MODE", "offline"),
            config=config.flat(),
        )
        self._told = Told(directory.path / "wandb" / "told.json")

    def log(self, section: str, env_step: int, values: Mapping[str, Any]) -> None:
        """Log scalars against the environment step, unless an earlier sitting has."""
        if not self._told.add(section, env_step):
            return
        named = {f"{section}/{name}": value for name, value in _numbers(values).items()}
        # W&B numbers rows from 0 in each sitting unless it is told.
        self._run.log({**named, "env_step": env_step}, step=self._told.rows - 1)

    def close(self) -> None:
        """Finish the W&B run."""
        self._run.finish()


def _wandb() -> Any:
    try:
        import wandb
    except ImportError:
        raise UserError(f"wandb: the package is not installed: {install('wandb')}") from None
    return wandb


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in values.items()
        if name != "env_step" and isinstance(value, int | float)
    }


def check(config: Config) -> None:
    """Check that the packages of the loggers are there.

    Raises:
        UserError: one is missing.
    """
    if config.runtime.wandb is not None:
        _wandb()


def open_loggers(directory: RunDirectory, config: Config, resumed_at: int) -> list[MetricLogger]:
    """The loggers that the config asks for."""
    loggers: list[MetricLogger] = []
    if config.runtime.tensorboard:
        loggers.append(TensorBoard(directory.tensorboard_path, resumed_at))
    if config.runtime.wandb is not None:
        loggers.append(WeightsAndBiases(directory, config, config.runtime.wandb))
    return loggers
