"""What a claim is: one or more contrasts, each a number that is positive if the claim is right.

Each study states its own claims, written down before its runs were looked at;
`diagnostics.studies.verdicts` puts them to runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from diagnostics.paper.names import label as paper_name
from diagnostics.runs.load import Runs
from diagnostics.studies import per_run

Measure = Callable[[Runs], pd.Series]

PLAIN = "/plain"
"""Behind a variant's name: its critics' LayerNorm was switched off."""


@dataclass(frozen=True)
class Contrast:
    """A number that is positive if the paper is right.

    Attributes:
        what: in words, the number that is compared.
        measure: one number per run.
        larger: the variant whose number is larger, or larger than zero if there is no other;
            `variant@K` is the variant primed with K updates, `variant/plain` the variant with its
            critics' LayerNorm switched off.
        smaller: the other variant.
        ratio: the measure is a logarithm, so the contrast is shown as a ratio.
        counts: part of the claim's verdict; others are shown to help read it.
        not_on: tasks on which the plan does not train all its variants: no gap, and no row.
    """

    what: str
    measure: Measure
    larger: str
    smaller: str | None = None
    ratio: bool = True
    counts: bool = True
    not_on: tuple[str, ...] = ()

    def sides(self) -> str:
        """The variants by their names in the paper; a condition that both share is said once."""
        names = [self.larger] if self.smaller is None else [self.larger, self.smaller]
        conditions = [_condition(name) for name in names]
        shown = [paper_name(variant_of(name)) for name in names]
        if conditions[0] == conditions[-1]:
            shared = f" ({conditions[0]})" if conditions[0] else ""
            return " against ".join(shown) + shared
        each = [
            f"{name}, {told}" if told else name
            for name, told in zip(shown, conditions, strict=True)
        ]
        return " against ".join(each)


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and what would show it."""

    name: str
    statement: str
    contrasts: tuple[Contrast, ...]


def primed(name: str, dose: int) -> str:
    """What a contrast calls a variant that is primed with so many updates."""
    return f"{name}@{dose}" if dose else name


def variant_of(name: str) -> str:
    """The variant of a contrast's side, without what is said of it."""
    return name.partition("@")[0].removesuffix(PLAIN)


def _condition(name: str) -> str:
    """What a contrast says of a side's variant: its dose, and whether LayerNorm was off."""
    marked, _, dose = name.partition("@")
    told = ["no LayerNorm"] if marked.endswith(PLAIN) else []
    return ", ".join([*told, f"primed {int(dose):,}"] if dose else told)


def each(
    what: str,
    measure: Measure,
    pairs: str,
    *,
    ratio: bool = True,
    counts: bool = True,
    not_on: tuple[str, ...] = (),
) -> tuple[Contrast, ...]:
    """Contrasts of one measure, from a text such as `a > b, c`."""
    found = []
    for pair in pairs.split(","):
        larger, _, smaller = (part.strip() for part in pair.partition(">"))
        found.append(Contrast(what, measure, larger, smaller or None, ratio, counts, not_on))
    return tuple(found)


def late_returns(
    pairs: str, *, counts: bool = True, not_on: tuple[str, ...] = ()
) -> tuple[Contrast, ...]:
    """Contrasts of the return late in training, from a text such as `a > b, c > d`."""
    what = "return, last fifth of training"
    return each(what, per_run.late_return, pairs, ratio=False, counts=counts, not_on=not_on)


def variants_of(claims: Sequence[Claim]) -> frozenset[str]:
    """Everything that some of the claims is about."""
    return frozenset(
        name
        for claim in claims
        for contrast in claim.contrasts
        for name in (contrast.larger, contrast.smaller)
        if name is not None
    )
