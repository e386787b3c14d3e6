"""ER decay on plain SAC at replay ratio 1, and FoG on SAC in place of OBAC."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from diagnostics.paper.names import label, ordered
from diagnostics.peers.load import Peers
from diagnostics.plots.curves import Plot
from diagnostics.plots.lines import lines
from diagnostics.plots.peers import looks, peer_curves
from diagnostics.studies.claims import Claim, late_returns
from diagnostics.studies.page import MissingDataError, Page
from diagnostics.studies.shared import opponents
from diagnostics.studies.shared.returns import returns, scores
from diagnostics.studies.study import Study

__all__ = ["FOG_ON_SAC", "LOW_RATIO", "STUDY", "beside_public", "fog_on_sac", "returns", "scores"]

LOW_RATIO = ("sac-utd1", "sac-utd1-decay")
PUBLIC = ("sac", "sac-nikishin-utd1")
"""Published runs of SAC at replay ratio 1."""
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


def beside_public(page: Page, *, peers: Peers | None) -> Plot:
    """Returns at replay ratio 1 beside those that others published for SAC, for scale."""
    page.require()
    known = opponents.needed(peers)
    names = [name for name in PUBLIC if name in known.methods]
    published = opponents.published_curves(known.select(names, page.tasks))
    ours = opponents.own_curves(page)
    if published.empty or ours.empty:
        raise MissingDataError(
            f"nothing to set side by side on {', '.join(page.tasks)}: "
            "the published curves or the runs have no evaluations of SAC there"
        )
    table = pd.concat([opponents.bands(published), opponents.bands(ours)], ignore_index=True)
    table = table[table["task"].isin(published["task"])]
    # Two variants of ours are to be told apart, so each has its own colour.
    own = lines(ordered(page.runs.identity["label"]))
    ours_by_name = {}
    for row in page.runs.runs[["label", "scale"]].drop_duplicates().itertuples():
        name = opponents.own_label(row.label, row.scale)
        ours_by_name[name] = replace(own[row.label], label=name)
    tasks = list(dict.fromkeys(table["task"]))
    return peer_curves(
        table,
        pd.DataFrame(columns=["task", "algorithm", "mean", "std", "steps"]),
        looks(names) | ours_by_name,
        title=f"SAC at replay ratio 1{f' on {tasks[0]}' if len(tasks) == 1 else ''}, "
        "beside public runs",
        ylabels=dict.fromkeys(tasks, "evaluation return"),
    )


def fog_on_sac(page: Page) -> Plot:
    """Returns with and without the offline critics; the title names what was trained, not more."""
    trained = [label(name) for name in ordered(page.runs.identity["variant"])]
    title = ", ".join(trained)
    if absent := [label(name) for name in page.wanted if label(name) not in trained]:
        title += f" (no run of {', '.join(absent)})"
    return returns(page, title=title)
