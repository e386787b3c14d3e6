"""ER decay on plain SAC at replay ratio 1, and FoG on SAC in place of OBAC."""

from __future__ import annotations

from diagnostics.paper.names import label, ordered
from diagnostics.plots.curves import Plot
from diagnostics.studies.claims import Claim, late_returns
from diagnostics.studies.page import Page
from diagnostics.studies.shared.returns import returns, scores
from diagnostics.studies.study import Study

__all__ = ["FOG_ON_SAC", "LOW_RATIO", "STUDY", "fog_on_sac", "returns", "scores"]

LOW_RATIO = ("sac-utd1", "sac-utd1-decay")
FOG_ON_SAC = ("sac", "fog-sac", "fog")

STUDY = Study(
    name="universality",
    order=8,
    variants=tuple(dict.fromkeys(LOW_RATIO + FOG_ON_SAC)),
    plans=("universality", "fog_on_sac"),
    claims=(
        Claim(
            "ER decay helps standard SAC",
            "At replay ratio 1, without LayerNorm and without resets, SAC with ER decay returns "
            "more than SAC.",
            late_returns("sac-utd1-decay > sac-utd1"),
        ),
    ),
)


def fog_on_sac(page: Page) -> Plot:
    """Returns with and without the offline critics; the title names what was trained, not more."""
    trained = [label(name) for name in ordered(page.runs.identity["variant"])]
    title = ", ".join(trained)
    if absent := [label(name) for name in page.wanted if label(name) not in trained]:
        title += f" (no run of {', '.join(absent)})"
    return returns(page, title=title)
