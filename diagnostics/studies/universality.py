"""ER decay on plain SAC at replay ratio 1, and FoG on SAC in place of OBAC."""

from __future__ import annotations

from diagnostics.studies.shared.returns import returns, scores
from diagnostics.studies.study import Study

__all__ = ["FOG_ON_SAC", "LOW_RATIO", "STUDY", "returns", "scores"]

LOW_RATIO = ("sac-utd1", "sac-utd1-decay")
FOG_ON_SAC = ("sac", "fog-sac", "fog")

STUDY = Study(
    name="universality",
    order=8,
    variants=tuple(dict.fromkeys(LOW_RATIO + FOG_ON_SAC)),
    plans=("universality", "fog_on_sac"),
)
