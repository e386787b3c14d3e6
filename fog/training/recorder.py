"""Writes what happens in a run to its directory: evaluations, training rows, events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fog.records.columns import EVALS, EVENTS
from fog.records.ledger import Ledger
from fog.records.loggers import MetricLogger, open_loggers
from fog.records.run_directory import RunDirectory
from fog.records.tables import CsvTable
from fog.settings.config import Config
from fog.training.evaluation import EpisodeScore


class MeanMetrics:
    """Means of the update metrics since the last row of train.csv, weighted by updates."""

    def __init__(self) -> None:
        self.sums: dict[str, float] = {}
        self.updates = 0

    def add(self, metrics: Mapping[str, float], updates: int) -> None:
        """Take in the means of `updates` updates."""
        for name, value in metrics.items():
            self.sums[name] = self.sums.get(name, 0.0) + value * updates
        self.updates += updates

    def take(self) -> dict[str, float]:
        """The means, and start again."""
        means = {name: total / self.updates for name, total in self.sums.items()}
        self.sums, self.updates = {}, 0
        return means


class Recorder:
    """The tables of one run. A resumed run first forgets what came after its checkpoint."""

    def __init__(
        self, directory: RunDirectory, config: Config, env_step: int, ledger: Ledger
    ) -> None:
        """Open the tables of a run that is at `env_step`: 0, or that of the checkpoint resumed.

        The ledger knows what that checkpoint continues; everything else is forgotten.
        """
        self._directory = directory
        self._ledger = ledger
        ledger.truncate(env_step)
        self._evals = CsvTable(directory.evals_path, EVALS, ledger)
        self._events = CsvTable(directory.events_path, EVENTS, ledger)
        # Its columns are known with the first row: they depend on the agent and the probes.
        self._train: CsvTable | None = None
        self._loggers: list[MetricLogger] = open_loggers(directory, config, env_step)

    def evaluation(self, env_step: int, first_episode: int, scores: list[EpisodeScore]) -> None:
        """Write one row for each evaluation episode."""
        for k, score in enumerate(scores):
            self._evals.append(
                {
                    "env_step": env_step,
                    "return": score.env_return,
                    "length": score.length,
                    "success_once": score.success_once,
                    "success_end": score.success_end,
                    "episode": first_episode + k,
                }
            )
        means: dict[str, float] = {}
        for name in ("env_return", "length", "success_once", "success_end"):
            values = [getattr(score, name) for score in scores]
            if None not in values:
                means[name.removeprefix("env_")] = sum(values) / len(values)
        self._mirror("eval", env_step, means)

    def train(self, env_step: int, row: Mapping[str, Any]) -> None:
        """Write one row of train.csv."""
        full = {"env_step": env_step, **row}
        if self._train is None:
            self._train = CsvTable(self._directory.train_path, tuple(full), self._ledger)
        self._train.append(full)
        self._mirror("train", env_step, row)

    def event(self, env_step: int, event: str, **details: Any) -> None:
        """Write one row of events.csv."""
        self._events.append({"env_step": env_step, "event": event, **details})

    def _mirror(self, section: str, env_step: int, values: Mapping[str, Any]) -> None:
        for mirror in self._loggers:
            mirror.log(section, env_step, values)

    def close(self) -> None:
        """Close the tables and loggers."""
        for table in (self._evals, self._events, self._train):
            if table is not None:
                table.close()
        for mirror in self._loggers:
            mirror.close()
