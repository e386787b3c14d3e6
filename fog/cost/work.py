"""How often everything happens in a run, from its config alone."""

from __future__ import annotations

from dataclasses import dataclass

from fog.algorithms.growth import ExpansionSchedule
from fog.settings.config import Config
from fog.training.schedule import UpdateSchedule, lives


@dataclass(frozen=True)
class Work:
    """The amounts that cost time and space."""

    steps: int
    warmup_steps: int
    updates: dict[int, int]
    """Updates made with critics of each depth."""
    changes: int
    """Resets and expansions."""
    evaluations: int
    windows: tuple[int, ...]
    """Environment steps at which a window ends."""
    checkpoints: int
    log_rows: int

    @property
    def total_updates(self) -> int:
        """Updates at all depths."""
        return sum(self.updates.values())

    @property
    def deepest(self) -> int:
        """The largest depth that is reached."""
        return max(self.updates)


def work_of(config: Config) -> Work:
    """The work of a whole run."""
    run, end = config.run, config.run.steps
    updates = UpdateSchedule.from_config(config)
    schedule = ExpansionSchedule.from_config(config)
    by_depth: dict[int, int] = {schedule.initial_depth: 0}
    changes = len(lives(config)) - 1
    for birth, death in lives(config):
        lived = updates.total(death) - updates.total(birth)
        edges = [0, *(at for at in schedule.at if at < lived), lived]
        changes += len([at for at in schedule.at if at <= lived])
        for k in range(len(edges) - 1):
            depth = schedule.initial_depth + k
            by_depth[depth] = by_depth.get(depth, 0) + edges[k + 1] - edges[k]
    windows = (*range(run.window_steps, end, run.window_steps), end)
    return Work(
        steps=end,
        warmup_steps=min(run.warmup_steps, end),
        updates=by_depth,
        changes=changes,
        evaluations=-(-end // run.eval_every),
        windows=windows,
        checkpoints=(end - 1) // config.runtime.checkpoint_every + 1,
        # Rows without updates are not written; the end of priming has a separate row.
        log_rows=-(-end // run.log_every)
        - run.warmup_steps // run.log_every
        + updates.primes(run.warmup_steps),
    )
