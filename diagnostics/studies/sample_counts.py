"""How often transitions are drawn: Theorems 1 and 2, simulated, and counted in real runs."""

from __future__ import annotations

from diagnostics.studies import per_run
from diagnostics.studies.claims import Claim, each
from diagnostics.studies.shared.draws import fit, observed
from diagnostics.studies.study import Study

__all__ = ["STUDY", "fit", "observed"]

_DRAWN = "draws, oldest tenth / newest tenth"

STUDY = Study(
    name="sample_counts",
    order=1,
    claims=(
        Claim(
            "older transitions are drawn more",
            "Older transitions are sampled considerably more often, however often the agent is "
            "reset; ER decay suppresses it.",
            (
                *each(_DRAWN, per_run.drawn, "sac, sac-reset, fog-uniform"),
                *each(_DRAWN, per_run.drawn, "sac-reset > balanced-sac, fog-uniform > fog"),
            ),
        ),
    ),
)
