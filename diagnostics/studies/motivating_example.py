"""The motivating example: five variants of SAC, their returns, and how they fit the buffer."""

from __future__ import annotations

from functools import partial

from diagnostics.studies import per_run
from diagnostics.studies.claims import Claim, each, late_returns
from diagnostics.studies.shared.losses import loss_heatmaps
from diagnostics.studies.shared.primacy_index import primacy_index, primacy_ranking
from diagnostics.studies.shared.returns import returns
from diagnostics.studies.study import Study

__all__ = ["STUDY", "loss_heatmaps", "primacy_index", "primacy_ranking", "returns"]

_scaled = partial(partial, quantity="scaled")
_LATE_LOSS = "loss of a window, all windows, 2nd half of training"
_NEWEST = "loss, newest window / older half, 2nd half of training"
_GROWTH = "loss on the newest window, 2nd half / 1st half of training"
_LATE = "loss on the newest window, 2nd half of training"
_FREE = ", scale-free"
_SAC_OVER = "sac > sac-reset, sac > per-sac, sac > balanced-sac, sac > expanded-sac"

STUDY = Study(
    name="motivating_example",
    order=2,
    variants=("sac", "sac-reset", "per-sac", "balanced-sac", "expanded-sac"),
    plans=("motivating_example",),
    claims=(
        Claim(
            "plain SAC fails to fit its data",
            "The critic loss of SAC is significantly higher than that of the variants with resets.",
            (
                *each(_LATE_LOSS, per_run.late_loss, _SAC_OVER),
                *each(_LATE_LOSS + _FREE, _scaled(per_run.late_loss), _SAC_OVER, counts=False),
            ),
        ),
        Claim(
            "reset alone leaves the late diagonal bright",
            "Even SAC with reset has a spike in loss on the diagonal as training progresses; "
            "Expanded SAC has a darker one.",
            (
                *each(_NEWEST, per_run.late_index, "sac-reset"),
                *each(_GROWTH, per_run.diagonal_growth, "sac-reset"),
                *each(_LATE, per_run.late_diagonal, "sac-reset > expanded-sac"),
                *each(_NEWEST + _FREE, _scaled(per_run.late_index), "sac-reset", counts=False),
                *each(_GROWTH + _FREE, _scaled(per_run.diagonal_growth), "sac-reset", counts=False),
                *each(_GROWTH, per_run.diagonal_growth, "sac-reset > expanded-sac", counts=False),
                *each(
                    _LATE + _FREE,
                    _scaled(per_run.late_diagonal),
                    "sac-reset > expanded-sac",
                    counts=False,
                ),
            ),
        ),
        Claim(
            "returns of the motivating example",
            "Expanded SAC returns more than SAC with reset, and ER decay more than PER. (That "
            "resets help SAC and expansion helps ER decay is implied, not said.)",
            late_returns(
                "sac-reset > sac, balanced-sac > per-sac, expanded-sac > balanced-sac, "
                "expanded-sac > sac-reset"
            ),
        ),
    ),
)
