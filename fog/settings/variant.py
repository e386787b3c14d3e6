"""What a variant is: a named set of config overrides, never a code path."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Variant:
    """A named agent of the paper, or an ablation of one."""

    name: str
    family: str
    summary: str
    resets: bool
    """Whether the task's reset list is used; a list of the variant's own is one of its settings."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What differs from FoG's defaults, by bare setting name."""
    suites: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What differs beyond that on the tasks of a suite."""
    horizon_discount: bool = False
    """Whether the discount follows from the length of an episode, see `horizon_discount`."""


def of_family(family: str, *variants: tuple[str, str, bool, dict[str, Any]]) -> tuple[Variant, ...]:
    """Variants of one family from their name, summary, use of the reset list and settings."""
    return tuple(
        Variant(name, family, summary, resets, settings)
        for name, summary, resets, settings in variants
    )
