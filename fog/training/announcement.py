"""What a run says about itself before its first step."""

from __future__ import annotations

from collections.abc import Sequence

from fog.records import run_directory
from fog.settings.config import Config
from fog.system.text import one_line
from fog.training.schedule import Planned, timeline


def announcement(config: Config, *, resume: bool) -> list[str]:
    """What is trained, into which directory, and which events its schedule skips."""
    run = config.run
    verb = "Resuming" if resume else "Training"
    size = f"{run.steps} steps, scale {run.scale:g}"
    return [
        f"{verb} {run.variant} on {run.task}, seed {run.seed}, {size}",
        f"into {one_line(str(run_directory.path_of(config)))}",
        *(f"note: {line}" for line in skipped(timeline(config).unreached)),
    ]


def skipped(unreached: Sequence[Planned]) -> list[str]:
    """One line for each kind and cause of events that the schedule names and does not reach."""
    steps: dict[tuple[str, str], list[int]] = {}
    for planned in unreached:
        steps.setdefault((planned.kind, planned.reason), []).append(planned.env_step)
    return [
        f"skipped: {kind} at step {', '.join(map(str, at))} ({reason})"
        for (kind, reason), at in steps.items()
    ]
