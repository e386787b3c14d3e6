"""Primacy bias by dose: what a known amount of it does, and what cures it.

This is not the paper's study but Nikishin et al.'s "heavy priming": an agent makes K updates on its
first transitions before training continues (`priming_updates`). `results/priming` holds the plans.
The contrasts were written down before their runs, after pilots with other seeds.
"""

from __future__ import annotations

from diagnostics.studies import per_run
from diagnostics.studies.claims import Claim, each
from diagnostics.studies.study import Study

DOSES = (0, 3_000, 10_000, 30_000, 100_000)
"""Priming updates of the study, on 200 transitions."""
HIGHEST = DOSES[-1]

_RETURN = "return, last fifth of training"


def _primed(pairs: str) -> str:
    """Every variant of a text such as `a > b` with the highest dose."""
    sides = [pair.split(">") for pair in pairs.split(",")]
    return ", ".join(" > ".join(f"{side.strip()}@{HIGHEST}" for side in pair) for pair in sides)


_CLAIMS = (
    Claim(
        "priming harms SAC without LayerNorm",
        "10,000 updates and more on the first 200 transitions lower what plain SAC returns later.",
        each(
            _RETURN,
            per_run.late_return,
            ", ".join(f"plain-sac > plain-sac@{dose}" for dose in DOSES[2:]),
            ratio=False,
        )
        + each(
            _RETURN, per_run.late_return, "plain-sac > plain-sac@3000", ratio=False, counts=False
        ),
    ),
    Claim(
        "LayerNorm protects",
        "Primed alike, SAC with LayerNorm critics returns more than SAC without.",
        each(_RETURN, per_run.late_return, _primed("norm-sac > plain-sac"), ratio=False)
        + each(
            _RETURN,
            per_run.late_return,
            f"norm-sac > plain-sac, norm-sac > norm-sac@{HIGHEST}",
            ratio=False,
            counts=False,
        ),
    ),
    *(
        Claim(
            f"{name} primed SAC",
            f"Primed alike, SAC without LayerNorm returns more with {how} than without.",
            each(
                _RETURN,
                per_run.late_return,
                _primed(f"plain-sac-{cure} > plain-sac"),
                ratio=False,
            )
            + each(
                _RETURN,
                per_run.late_return,
                _primed(f"norm-sac-{cure} > norm-sac"),
                ratio=False,
                counts=False,
            ),
        )
        for name, cure, how in (
            ("resets cure", "reset", "resets"),
            ("ER decay cures", "decay", "ER decay"),
            ("resets and ER decay cure", "reset-decay", "resets and ER decay"),
            ("growth cures", "grow", "growing critics"),
        )
    ),
)

STUDY = Study(
    name="priming",
    order=10,
    variants=tuple(
        f"{family}-sac{cure}"
        for family in ("plain", "norm")
        for cure in ("", "-reset", "-decay", "-reset-decay", "-grow")
    ),
    claims=_CLAIMS,
    judged_with="priming",
)
