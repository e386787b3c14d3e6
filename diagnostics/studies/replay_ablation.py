"""FoG under four replay rules: ER decay, PER, CUER and uniform."""

from __future__ import annotations

from diagnostics.studies.claims import Claim, late_returns
from diagnostics.studies.shared.draws import observed
from diagnostics.studies.shared.losses import loss_heatmaps
from diagnostics.studies.shared.returns import returns, scores
from diagnostics.studies.study import Study

__all__ = ["STUDY", "loss_heatmaps", "observed", "returns", "scores"]

STUDY = Study(
    name="replay_ablation",
    order=6,
    variants=("fog", "fog-per", "fog-cuer", "fog-uniform"),
    plans=("replay_ablation",),
    claims=(
        Claim(
            "returns of FoG's ablations",
            "FoG is ahead of uniform replay, PER and CUER, and of both fixed sizes.",
            late_returns(
                "fog > fog-uniform, fog > fog-per, fog > fog-cuer, fog > fog-fixed2, "
                "fog > fog-fixed4"
            ),
        ),
    ),
)
