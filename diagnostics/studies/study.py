"""What a study is, and the list of studies.

A study is one module of this package, named like its notebook, with a `STUDY` in it: its variants,
its plan and its claims. The module also holds the figures that its notebook draws.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache

from diagnostics.studies.claims import Claim


@dataclass(frozen=True)
class Study:
    """One experiment, of the paper or our own."""

    name: str
    """Of its module and its notebook."""
    order: int
    """Its place among the studies when several are listed."""
    variants: tuple[str, ...] = ()
    """What is compared; empty for a study of any variant."""
    plans: tuple[str, ...] = ()
    """Files in plans/ that train it."""
    claims: tuple[Claim, ...] = ()
    """What it says, written down before its runs."""
    judged_with: str = "the paper"
    """Claims of studies with the same word are judged together (Holm)."""


@cache
def studies() -> tuple[Study, ...]:
    """All studies, in their order."""
    import diagnostics.studies as package

    found = []
    for module in pkgutil.iter_modules(package.__path__):
        study = getattr(importlib.import_module(f"{package.__name__}.{module.name}"), "STUDY", None)
        if isinstance(study, Study):
            found.append(study)
    return tuple(sorted(found, key=lambda study: study.order))


def claims_judged_together() -> dict[str, tuple[Claim, ...]]:
    """All claims, in groups that are corrected for their number together."""
    groups: dict[str, tuple[Claim, ...]] = {}
    for study in studies():
        if study.claims:
            groups[study.judged_with] = groups.get(study.judged_with, ()) + study.claims
    return groups


def paper_claims() -> tuple[Claim, ...]:
    """The claims of the paper."""
    return claims_judged_together()["the paper"]
