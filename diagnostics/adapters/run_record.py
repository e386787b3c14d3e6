"""The run directory of an agent that our trainer does not train, as every command reads it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fog.errors import UserError
from fog.events import Facts
from fog.records import joining
from fog.records.columns import EVALS, EVENTS, TRAIN
from fog.records.ledger import Ledger
from fog.records.run_directory import RunDirectory, timestamp, write_atomically
from fog.records.tables import CsvTable
from fog.system import machine


class RunRecord:
    """Config, manifest and CSV tables beside what probes write.

    The directory is best named `<task>/<variant>/seed<k>`, like our own runs: names that are not
    given are taken from there.

    Args:
        path: the run directory; must not hold a run yet.
        facts: what probes know of the run.
        task: the environment's name.
        variant: the agent's name.
        library: what trained it, for the manifest.
    """

    def __init__(
        self,
        path: Path,
        facts: Facts,
        task: str | None = None,
        variant: str | None = None,
        library: str | None = None,
    ) -> None:
        self.path = path
        self.ledger = Ledger(path)
        self._directory = RunDirectory(path)
        self._facts = facts
        self._names = {"task": task, "variant": variant}
        self._library = library
        self._tables: dict[str, CsvTable] = {}
        self._episodes = 0
        self._last_return: float | None = None
        self._clock, self._updates = time.monotonic(), 0

    def open(self, probes: Sequence[str], unmeasured: Mapping[str, str]) -> None:
        """Make the directory and say that the run has begun, with these probes.

        Raises:
            UserError: a run is already there, or the directory cannot be written.
        """
        directory, facts = self._directory, self._facts
        taken = (directory.config_path, directory.manifest_path, directory.probes_path)
        if any(path.exists() for path in taken):
            raise UserError(f"{self.path} already holds a run: choose another directory")
        settings = {
            "run": {
                **{name: value for name, value in self._names.items() if value is not None},
                "seed": facts.seed,
                "scale": 1.0,
                "steps": facts.steps,
                "window_steps": facts.window_steps,
            },
            "agent": {"batch_size": facts.batch_size, "discount": facts.discount},
            "replay": {"sampler": facts.sampler, "capacity": facts.capacity},
        }
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            directory.lock()
            write_atomically(directory.config_path, yaml.safe_dump(settings, sort_keys=False))
            directory.update_manifest(
                status="running",
                started=timestamp(),
                versions=machine.versions(),
                library=self._library,
                metric="return",
            )
            self.tell(probes, unmeasured)
            train = (*TRAIN, *(f"probe_seconds.{name}" for name in probes))
            self._tables = {
                name: CsvTable(self.path / f"{name}.csv", columns, self.ledger)
                for name, columns in (("evals", EVALS), ("train", train), ("events", EVENTS))
            }
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"cannot write run directory {self.path}: {reason}") from None

    def train(self, env_step: int, updates: int, seconds: Mapping[str, float]) -> None:
        """How far training has come, and how long each probe has taken so far."""
        now = time.monotonic()
        rate = (updates - self._updates) / max(now - self._clock, 1e-9)
        self._clock, self._updates = now, updates
        row = {"env_step": env_step, "updates": updates, "updates_per_second": rate}
        spent = {f"probe_seconds.{name}": value for name, value in seconds.items()}
        self._tables["train"].append(row | spent)

    def evaluation(self, env_step: int, returns: Sequence[float], lengths: Sequence[int]) -> None:
        """Evaluation episodes."""
        for value, length in zip(returns, lengths, strict=True):
            row = {"env_step": env_step, "return": value, "length": length}
            self._tables["evals"].append({**row, "episode": self._episodes})
            self._episodes += 1
        self._last_return = sum(returns) / len(returns)

    def event(self, env_step: int, updates: int, event: str) -> None:
        """A reset or an expansion."""
        self._tables["events"].append({"env_step": env_step, "event": event, "updates": updates})

    def tell(self, probes: Sequence[str], unmeasured: Mapping[str, str]) -> None:
        """Which probes are on, and what cannot be measured and why."""
        self._directory.update_manifest(probes=list(probes), unmeasured=dict(unmeasured))

    def close(self, env_step: int, unmeasured: Mapping[str, str]) -> None:
        """The run has ended."""
        for table in self._tables.values():
            table.close()
        why = dict(unmeasured)
        if not self._episodes:
            why["evals"] = "no evaluation episodes were given"
        entries: dict[str, Any] = {"status": "finished", "env_step": env_step, "reason": None}
        self._directory.update_manifest(
            **entries,
            unmeasured=why,
            final_return=self._last_return,
            ended=timestamp(),
            files=joining.conclude(self.path, self.ledger.files),
        )
        self._directory.unlock()
