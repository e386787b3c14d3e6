"""Which runs: tasks x variants x seeds, from flags or from a file (see `fog.sweep.planfile`).

All configs are resolved, and so checked, before anything starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fog.errors import ConfigError
from fog.settings import tasks, variants
from fog.settings.options import unknown
from fog.sweep.job import Job
from fog.system.text import shown

MOST_SEEDS = 10_000
"""In one range: more is a slip of the keyboard."""


@dataclass(frozen=True)
class Block:
    """A full grid: every variant on every task with every seed."""

    tasks: tuple[str, ...] = ()
    variants: tuple[str, ...] = ("fog",)
    seeds: tuple[int, ...] = (0,)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings by bare name, in real units: they are not scaled."""


@dataclass(frozen=True)
class Plan:
    """A named set of runs."""

    name: str
    blocks: tuple[Block, ...]
    scale: float = 1.0
    source: str = ""
    """The file it came from, for messages; empty if it came from flags."""

    def only(
        self, task_names: Sequence[str], variant_names: Sequence[str], seeds: Sequence[int]
    ) -> Plan:
        """The part of the plan with these tasks, variants and seeds; empty means all.

        Raises:
            ConfigError: a name that the plan does not hold.
        """
        blocks = list(self.blocks)
        for key, wanted in (("tasks", task_names), ("variants", variant_names), ("seeds", seeds)):
            held = dict.fromkeys(item for block in self.blocks for item in getattr(block, key))
            for item in wanted:
                if item not in held:
                    has = ", ".join(map(str, held))
                    raise ConfigError(f"--{key}: {item} is not in {self.source}, which has {has}")
            if wanted:
                blocks = [_narrowed(block, key, set(wanted)) for block in blocks]
        return replace(self, blocks=tuple(blocks))

    def jobs(self, overrides: Mapping[str, Any], scale: float | None = None) -> list[Job]:
        """Every run of the plan once, the longest first.

        Args:
            overrides: settings of every run, whatever its block says.
            scale: replaces the plan's scale.

        Raises:
            ConfigError: a setting is wrong, or two blocks ask for one run with different settings.
        """
        scale = self.scale if scale is None else scale
        found: dict[Path, Job] = {}
        for number, block in enumerate(self.blocks, start=1):
            where = self._where(number)
            for job in _expand(block, scale, overrides, where):
                other = found.setdefault(job.directory, job)
                if other.config != job.config:
                    raise ConfigError(f"{where}{_clash(other, job)}")
        if not found:
            raise ConfigError(f"{self.source or 'sweep'}: no run is left")
        # Stable: runs of equal length stay in the plan's order, which goes seed by seed.
        return sorted(found.values(), key=lambda job: -job.weight)

    def _where(self, number: int) -> str:
        if not self.source:
            return ""
        return f"{self.source}: " + (f"block {number}: " if len(self.blocks) > 1 else "")


def _narrowed(block: Block, key: str, wanted: set[Any]) -> Block:
    kept: dict[str, Any] = {key: tuple(at for at in getattr(block, key) if at in wanted)}
    return replace(block, **kept)


def _expand(block: Block, scale: float, overrides: Mapping[str, Any], where: str) -> Iterable[Job]:
    settings = {**block.settings, **overrides}
    for seed in block.seeds:
        for task in block.tasks:
            for variant in block.variants:
                try:
                    yield Job.of(task, variant, seed, scale, settings)
                except ConfigError as error:
                    raise ConfigError(f"{where}{error}") from None


def _clash(one: Job, other: Job) -> str:
    first, second = one.config.flat(), other.config.flat()
    name = next(name for name, value in first.items() if second[name] != value)
    return (
        f"{other.label} is asked for twice, with {name} = {first[name]} and {name} = "
        f"{second[name]}; give one block another out, or the same settings"
    )


def task_names(items: Iterable[str]) -> tuple[str, ...]:
    """Task names, with `suite:mujoco`, `suite:dmc-hard` or `suite:all` spelt out.

    Raises:
        ConfigError: an unknown task or suite.
    """
    names: dict[str, None] = {}
    for item in items:
        prefix, _, suite = item.partition(":")
        if prefix == "suite":
            names |= dict.fromkeys(_suite(suite))
        else:
            names[tasks.get(item).name] = None
    return tuple(names)


def _suite(name: str) -> list[str]:
    members: dict[str, list[str]] = {"all": []}
    for task in tasks.registry().values():
        members["all"].append(task.name)
        for key in dict.fromkeys(
            (task.suite, task.group.lower().replace("meta-world", "metaworld"))
        ):
            members.setdefault(key, []).append(task.name)
    if name not in members:
        raise unknown("suite", name, members)
    return members[name]


def variant_names(items: Iterable[str]) -> tuple[str, ...]:
    """Variant names without repeats.

    Raises:
        ConfigError: an unknown variant.
    """
    return tuple(dict.fromkeys(variants.get(item).name for item in items))


def seed_numbers(items: Iterable[Any]) -> tuple[int, ...]:
    """Seeds from numbers and ranges: 3, "3", "0-4" (both ends belong to it).

    Raises:
        ConfigError: anything else.
    """
    seeds: dict[int, None] = {}
    for item in items:
        span = re.fullmatch(r"(\d{1,15})(?:-(\d{1,15}))?", str(item))
        if span is None or isinstance(item, bool):
            raise ConfigError(f"seeds: expected numbers or ranges such as 0-4, got {shown(item)}")
        first = int(span[1])
        last = int(span[2] or first)
        if last < first:
            raise ConfigError(f"seeds: {item} is not a range of seeds; write the smaller one first")
        if last - first >= MOST_SEEDS:
            raise ConfigError(f"seeds: {item} is a range of more than {MOST_SEEDS} seeds")
        seeds |= dict.fromkeys(range(first, last + 1))
    if not seeds:
        raise ConfigError("seeds: none given, for example 0 1 2 or 0-4")
    return tuple(seeds)
