"""When things happen: updates, resets, expansions, evaluations, windows.

Everything here is a pure function of the config, so the whole timeline of a run is known, and
printed, before it starts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, Self

from fog.settings.config import Config

PORTION = 16
"""Most updates made in one go. Their batches are drawn at once, so this bounds memory, and a
request to stop waits for no more than these."""


class UpdateSchedule:
    """How many updates are due after each environment step, exact for any replay ratio.

    Counted from the end of the warm-up as floor(ratio x steps) with the ratio as the decimal the
    user wrote, so fractions below 1 neither drift nor burst, and nothing has to be checkpointed.
    The updates of priming all belong to the last step of the warm-up.
    """

    def __init__(self, replay_ratio: float, warmup_steps: int, priming_updates: int = 0) -> None:
        self._ratio = Fraction(repr(replay_ratio))
        self._warmup = warmup_steps
        self._priming = priming_updates

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """The schedule of a run."""
        priming = config.lifecycle.priming_updates
        return cls(config.agent.replay_ratio, config.run.warmup_steps, priming)

    def total(self, env_step: int) -> int:
        """Updates that must have been made by the end of `env_step`."""
        steps = env_step - self._warmup
        if steps < 0:
            return 0
        return self._priming + steps * self._ratio.numerator // self._ratio.denominator

    def primes(self, env_step: int) -> bool:
        """Whether the updates of `env_step` are those of priming."""
        return self._priming > 0 and env_step == self._warmup

    def first_step(self, updates: int) -> int:
        """The first environment step by whose end `updates` updates have been made."""
        if updates <= 0:
            return 0
        later = max(0, updates - self._priming)
        steps = -(-later * self._ratio.denominator // self._ratio.numerator)
        return self._warmup + steps


EventKind = Literal["priming", "reset", "expansion", "cloning"]


@dataclass(frozen=True)
class Planned:
    """One lifecycle event of the timeline, or one that is skipped, and why."""

    kind: EventKind
    env_step: int
    detail: str
    reason: str = ""


@dataclass(frozen=True)
class Timeline:
    """Lifecycle events in the order they happen, and those that are skipped."""

    events: tuple[Planned, ...]
    unreached: tuple[Planned, ...]


def lives(config: Config) -> list[tuple[int, int]]:
    """First and last environment step of each life of the networks, from reset to reset."""
    end = config.run.steps
    resets = [at for at in config.lifecycle.reset_steps if at < end]
    return list(zip([0, *resets], [*resets, end], strict=True))


def timeline(config: Config) -> Timeline:
    """The lifecycle of a run, before it starts.

    An event that a schedule never reaches is not an error: the paper's own second expansion falls
    after the first reset, and its later resets beyond the end of the shorter tasks.
    """
    updates = UpdateSchedule.from_config(config)
    end = config.run.steps
    reached: list[Planned] = []
    missed: list[tuple[Planned, int]] = []
    for birth, death in lives(config):
        born_at = updates.total(birth)
        for planned in _life(config, updates, birth, born_at):
            if planned.env_step <= death:
                reached.append(planned)
            else:
                missed.append((planned, death))
        if death != end:
            reached.append(Planned("reset", death, "everything learnable restarts"))
    missed += [(Planned("reset", at, ""), end) for at in config.lifecycle.reset_steps if at >= end]
    unreached = [
        replace(planned, reason=_reason(planned.kind, death, end, reached))
        for planned, death in missed
    ]
    if config.lifecycle.priming_updates:
        # First of its step: expansions may fall among its updates, a reset comes after them.
        reached.insert(0, Planned("priming", config.run.warmup_steps, priming_detail(config)))
        reached.sort(key=lambda event: event.env_step)
    return Timeline(tuple(reached), tuple(unreached))


def _reason(kind: EventKind, death: int, end: int, reached: list[Planned]) -> str:
    """Why an event is skipped in the life that ends at step `death`, and when the next one comes.

    Without the latter a reader takes it that critics never grow at all.
    """
    if death == end:
        return f"the run ends at step {end}"
    later = [event.env_step for event in reached if event.kind == kind and event.env_step > death]
    again = f"the next {kind} is at step {later[0]}" if later else f"no {kind} comes later"
    return f"the reset at step {death} comes first; {again}"


def priming_detail(config: Config) -> str:
    """The dose of priming, in the words of the timeline and of events.csv."""
    stored = min(config.run.warmup_steps, config.replay.capacity)
    return f"{config.lifecycle.priming_updates} updates on the first {stored} transitions"


def _life(config: Config, updates: UpdateSchedule, birth: int, born_at: int) -> list[Planned]:
    """What is due in one life of the networks, in order."""
    depth = config.network.initial_depth
    planned = []
    for after in config.lifecycle.expansion_updates:
        if depth == config.network.maximal_depth:
            break
        detail = f"{_gain(config, depth)}, {after} updates after step {birth}"
        planned.append(Planned("expansion", updates.first_step(born_at + after), detail))
        depth += 1
    if config.agent.backbone == "obac" and config.agent.bc_weight > 0:
        # The wait is over after its last update, so cloning can first act in the one that follows.
        first = born_at + config.agent.bc_wait_updates + 1
        waited = f"{config.agent.bc_wait_updates} updates after step {birth}"
        detail = f"behaviour cloning may act, {waited}"
        planned.append(Planned("cloning", updates.first_step(first), detail))
    return sorted(planned, key=lambda event: event.env_step)


def _gain(config: Config, depth: int) -> str:
    """What the next expansion of critics of this depth does; injections leave the blocks alone."""
    if config.lifecycle.growth == "injection":
        return f"plasticity injection {depth - config.network.initial_depth + 1}"
    return f"depth {depth} to {depth + 1}"
