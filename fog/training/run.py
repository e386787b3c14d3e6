"""`fog.train`: from a config to a run directory, whatever happens in between."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fog.errors import UserError
from fog.probing import registry
from fog.records import checkpoint, joining, ledger
from fog.records.run_directory import RunDirectory, timestamp
from fog.records.statuses import Status
from fog.settings import tasks
from fog.settings.config import Config
from fog.system import machine
from fog.system.interrupts import StopRequest
from fog.training import video
from fog.training.announcement import announcement
from fog.training.checks import check
from fog.training.console import Reporter, reporter
from fog.training.learner import DivergedError
from fog.training.trainer import Trainer


@dataclass(frozen=True)
class Run:
    """A run on disk, and how it ended."""

    directory: Path
    status: Status
    final_return: float | None
    """Mean return of the last evaluation."""


def train(config: Config, *, resume: bool = False, quiet: bool = True) -> Run:
    """Train one agent and leave everything about it in its run directory.

    Args:
        config: from `fog.resolve`, or built by hand.
        resume: continue an interrupted or killed run; on the CPU the result is bit for bit that of
            an uninterrupted run.
        quiet: print nothing: neither what is trained nor how far it is.

    Returns:
        The run's directory, how it ended, and its last mean evaluation return.

    Raises:
        UserError: the task, probe or device does not exist here, or the directory is taken.
    """
    check(config)
    directory = RunDirectory.reopen(config) if resume else RunDirectory.create(config)
    try:
        return _train(config, directory, resume, quiet)
    finally:
        directory.unlock()


def _train(config: Config, directory: RunDirectory, resume: bool, quiet: bool) -> Run:
    if directory.manifest().get("status") == "finished":
        raise UserError(
            f"{directory.path} is finished and cannot be lengthened: choose another out or seed"
        )
    run = config.run
    title = f"{run.task} {run.variant} seed{run.seed}"
    refused: list[str] = []
    if resume:
        joining.split(directory.path)
    home = _resumable(directory, refused.append) if resume else None
    initial = 0 if home is None else int(home.name)
    report = Reporter() if quiet else reporter(run.steps, initial, title)
    for line in refused:
        report.say(line)
    trainer: Trainer | None = None
    directory.update_manifest(
        status="running",
        files=None,
        started=directory.manifest().get("started", timestamp()),
        versions=machine.versions(),
        git_commit=machine.git_commit(),
        hardware=machine.hardware(),
        command=sys.argv,
        **_task_facts(run.task),
    )
    status: Status = "failed"
    reason = files = None
    try:
        with StopRequest() as stop:
            trainer = Trainer(config, directory, report)
            directory.update_manifest(
                obs_dim=trainer.agent.spec.obs_dim,
                act_dim=trainer.agent.spec.act_dim,
                device=str(trainer.agent.device),
                compiled=trainer.agent.compiled,
                probes=registry.chosen(run.probes),
            )
            if home is None:
                trainer.start()
            else:
                trainer.restore(home)
                checkpoint.forget_newer(home)
            # Only now, so that a run that is refused says why and nothing else.
            for line in announcement(config, resume=resume):
                report.say(line)
            status = trainer.loop(stop)
            if status == "finished":
                files = joining.conclude(directory.path, trainer.ledger.files)
            if status == "finished" and config.runtime.video_episodes:
                video.film(trainer.agent, config, directory.path / "videos")
    except DivergedError as error:
        assert trainer is not None
        status, reason = "diverged", str(error)
        trainer.diverged(reason)
        files = joining.conclude(directory.path, trainer.ledger.files)
    except BaseException as error:
        reason = f"{type(error).__name__}: {error}"
        raise
    finally:
        if trainer is not None:
            trainer.close()
        report.close()
        final = None if trainer is None else trainer.last_eval
        # A failed start has lost nothing: the run is still at its checkpoint.
        steps = initial if trainer is None else max(initial, trainer.progress.env_step)
        directory.update_manifest(
            status=status,
            reason=reason,
            env_step=steps,
            final_return=final,
            ended=timestamp(),
            files=files,
        )
    return Run(directory.path, status, final)


def _resumable(directory: RunDirectory, say: checkpoint.Warn) -> Path | None:
    """The newest undamaged checkpoint that matches the tables in the directory."""

    def state(home: Path) -> Any:
        return checkpoint.load_json(home / checkpoint.STATE)

    def misfit(home: Path) -> str | None:
        return ledger.misfit(directory.path, state(home))

    home = checkpoint.newest_valid(directory.checkpoint_path, say, misfit)
    if home is not None and ledger.unverified(state(home)):
        say(f"checkpoint {home} has an earlier version: its tables could not be verified")
    return home


def _task_facts(name: str) -> dict[str, Any]:
    """What the analysis needs to know about the task, since it does not import this code."""
    task = tasks.get(name)
    names = ("suite", "group", "metric", "normaliser", "paper_table", "paper_row")
    return {fact: getattr(task, fact) for fact in names}
