"""Primacy bias by dose: what a known amount of it does, and what cures it.

This is not the paper's study but Nikishin et al.'s "heavy priming": an agent makes K updates on its
first transitions before training continues (`priming_updates`). `results/priming` holds the plans.
The contrasts were written down before their runs, after pilots with other seeds.
"""

from __future__ import annotations

from diagnostics.studies.claims import Claim, late_returns
from diagnostics.studies.study import Study

DOSES = (0, 3_000, 10_000, 30_000, 100_000)
"""Priming updates of the study, on 200 transitions."""
HIGHEST = DOSES[-1]
HELD_OUT = ("HalfCheetah-v4",)
"""The second task: its plan has the lowest and the highest dose, and resets as the only cure."""

DEMONSTRATION: dict[str, tuple[str, str, dict[str, object]]] = {
    "Unprimed SAC": ("unprimed", "plain-sac", {"priming_updates": 0}),
    "Primed": ("primed", "plain-sac", {"priming_updates": HIGHEST}),
    "Primed, with resets": (
        "primed",
        "plain-sac-reset",
        {"priming_updates": HIGHEST, "reset_steps": (3_000, 10_000)},
    ),
    "Primed, with LayerNorm critics": ("primed", "norm-sac", {"priming_updates": HIGHEST}),
}
"""What `fog reproduce` trains: by name the folder, the variant and its settings."""


def _primed(pairs: str) -> str:
    """Every variant of a text such as `a > b` with the highest dose."""
    sides = [pair.split(">") for pair in pairs.split(",")]
    return ", ".join(" > ".join(f"{side.strip()}@{HIGHEST}" for side in pair) for pair in sides)


_CLAIMS = (
    Claim(
        "priming harms SAC without LayerNorm",
        "10,000 updates and more on the first 200 transitions lower what plain SAC returns later.",
        late_returns(f"plain-sac > plain-sac@{HIGHEST}")
        + late_returns("plain-sac > plain-sac@10000, plain-sac > plain-sac@30000", not_on=HELD_OUT)
        + late_returns("plain-sac > plain-sac@3000", counts=False, not_on=HELD_OUT),
    ),
    Claim(
        "LayerNorm protects",
        "Primed alike, SAC with LayerNorm critics returns more than SAC without.",
        late_returns(_primed("norm-sac > plain-sac"))
        + late_returns(f"norm-sac > plain-sac, norm-sac > norm-sac@{HIGHEST}", counts=False),
    ),
    *(
        Claim(
            f"{name} primed SAC",
            f"Primed alike, SAC without LayerNorm returns more with {how} than without.",
            late_returns(_primed(f"plain-sac-{cure} > plain-sac"), not_on=not_on)
            + late_returns(_primed(f"norm-sac-{cure} > norm-sac"), counts=False, not_on=HELD_OUT),
        )
        for name, cure, how, not_on in (
            ("resets cure", "reset", "resets", ()),
            ("ER decay cures", "decay", "ER decay", HELD_OUT),
            ("resets and ER decay cure", "reset-decay", "resets and ER decay", HELD_OUT),
            ("growth cures", "grow", "growing critics", HELD_OUT),
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
