"""Prioritised replay against ER decay: which fits the newest data better?"""

from __future__ import annotations

from functools import partial

from diagnostics.studies import per_run
from diagnostics.studies.claims import Claim, each
from diagnostics.studies.shared.losses import diagonals, loss_heatmaps, loss_ratio
from diagnostics.studies.study import Study

__all__ = ["STUDY", "diagonals", "loss_heatmaps", "loss_ratio"]

_DIAGONAL = "loss on the newest window"

STUDY = Study(
    name="per_vs_decay",
    order=3,
    variants=("per-sac", "balanced-sac"),
    plans=("motivating_example",),
    claims=(
        Claim(
            "decay beats PER on the diagonal",
            "The values on the diagonal of ER decay are generally smaller than those of PER.",
            (
                *each(_DIAGONAL, per_run.diagonal, "per-sac > balanced-sac"),
                *each(
                    f"{_DIAGONAL}, scale-free",
                    partial(per_run.diagonal, quantity="scaled"),
                    "per-sac > balanced-sac",
                    counts=False,
                ),
            ),
        ),
    ),
)
