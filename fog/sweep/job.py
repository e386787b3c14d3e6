"""One run of a sweep: its config, its `fog train` command, and its progress.

A run's state is read from its directory, so a sweep keeps no state itself: after a kill, a new
sweep finds everything there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fog.records import checkpoint, run_directory
from fog.records.run_directory import RunDirectory
from fog.settings import variants
from fog.settings.config import Config
from fog.system.children import python
from fog.training.schedule import UpdateSchedule

JobStatus = Literal["new", "busy", "killed", "interrupted", "failed", "finished", "diverged"]
"""`busy`: a process is writing it now. `killed`: marked as running, but no process writes it.
`diverged` is a result: starting it again would diverge again."""


@dataclass(frozen=True)
class Job:
    """One run. Plain data, so that an engine can send it to another machine."""

    config: Config
    flags: tuple[str, ...]
    """Arguments of `fog train` that resolve to `config`, without `--resume`."""
    home: Path
    """Base of relative paths, and the working directory of the run if its node has it."""

    @classmethod
    def of(
        cls,
        task: str,
        variant: str,
        seed: int,
        scale: float,
        settings: Mapping[str, Any],
        home: Path | None = None,
    ) -> Job:
        """The run of a task, variant and seed; `settings` are not scaled.

        Raises:
            ConfigError: an unknown name, a wrong type or an impossible combination.
        """
        config = variants.resolve(task, variant, scale, seed=seed, **settings)
        names = dict.fromkeys(("task", "variant", "seed", "scale", *settings))
        flat = config.flat()
        return cls(config, tuple(_flag(n, flat[n]) for n in names), home or Path.cwd())

    @property
    def agent(self) -> str:
        """The variant, and the dose of a primed one: it is another agent than the unprimed one."""
        dose = self.config.lifecycle.priming_updates
        return f"{self.config.run.variant} primed {dose:,}" if dose else self.config.run.variant

    @property
    def label(self) -> str:
        """The run's name in tables and messages."""
        return f"{self.config.run.task} {self.agent} seed{self.config.run.seed}"

    @property
    def directory(self) -> Path:
        """The run directory, absolute."""
        return self.home / run_directory.path_of(self.config)

    @property
    def log(self) -> Path:
        """Where the run's process writes what `fog train` would print."""
        return self.directory / "log.txt"

    @property
    def updates(self) -> int:
        """Gradient updates of the whole run."""
        return UpdateSchedule.from_config(self.config).total(self.config.run.steps)

    @property
    def weight(self) -> float:
        """Rough work of the run, to start the longest first: updates by critic multiplications."""
        network, agent = self.config.network, self.config.agent
        # Narrow networks are all overhead, so width does not count alone.
        layers = network.stem_layers + 2 * network.maximal_depth
        per_update = layers * (network.width + 64) ** 2 * agent.batch_size
        return float(self.updates * per_update * (2 if agent.backbone == "obac" else 1))

    def command(self) -> list[str]:
        """The command that starts or resumes the run, given its current state."""
        resume = ["--resume"] if self.begun() else []
        return python("-m", "fog", "train", *self.flags, *resume)

    def begun(self) -> bool:
        """Whether there is something to resume."""
        directory = RunDirectory(self.directory)
        return directory.holds_run() and not directory.stillborn()

    def conflict(self) -> str | None:
        """One line if the directory holds a run with other settings than ours, otherwise None."""
        if not self.begun():
            return None
        difference = RunDirectory(self.directory).difference(self.config)
        if difference is None:
            return None
        return f"{self.directory} holds another run: {difference}; choose another --out"

    def status(self) -> JobStatus:
        """The run's state, from its manifest and its lock."""
        directory = RunDirectory(self.directory)
        if directory.locked():
            return "busy"
        if not directory.holds_run():
            return "new"
        status = directory.manifest().get("status", "running")
        if status == "running":
            return "killed"
        known: JobStatus = status
        return known

    def checkpoint_step(self) -> int:
        """The environment step of the newest checkpoint, 0 if there is none."""
        found = checkpoint.candidates(self.directory / "checkpoint")
        return int(found[0].name) if found else 0


def _flag(name: str, value: Any) -> str:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    if isinstance(value, tuple):
        value = ",".join(str(item) for item in value) or "none"
    return f"--{flag}={'none' if value is None else value}"
