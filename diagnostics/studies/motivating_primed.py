"""The motivating example where there is something to cure: its five variants, primed.

At the length of a miniature, SAC at a high replay ratio is no worse off than with resets, so there
is nothing that resets, PER, ER decay or growth could cure. Here all five begin with a known amount
of primacy bias instead: the highest dose of `diagnostics.studies.priming`, with LayerNorm critics
and without. `results/motivating` holds the plan. The claims are the paper's own, word for word and
contrast for contrast, and were put here before any of these runs had been looked at.
"""

from __future__ import annotations

from dataclasses import replace

from diagnostics.studies import motivating_example, per_vs_decay
from diagnostics.studies.claims import PLAIN, Claim, primed
from diagnostics.studies.priming import HIGHEST
from diagnostics.studies.study import Study


def _under(claim: Claim, condition: str, mark: str) -> Claim:
    """A claim of the paper about runs under a condition."""
    contrasts = tuple(
        replace(
            contrast,
            larger=primed(contrast.larger + mark, HIGHEST),
            smaller=contrast.smaller and primed(contrast.smaller + mark, HIGHEST),
        )
        for contrast in claim.contrasts
    )
    return Claim(f"{claim.name} ({condition})", claim.statement, contrasts)


STUDY = Study(
    name="motivating_primed",
    order=11,
    variants=motivating_example.STUDY.variants,
    claims=tuple(
        _under(claim, condition, mark)
        for condition, mark in (("primed, no LayerNorm", PLAIN), ("primed, LayerNorm", ""))
        for claim in motivating_example.STUDY.claims + per_vs_decay.STUDY.claims
    ),
    judged_with="the motivating example, primed",
)
