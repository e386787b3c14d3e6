"""Dormant neurons over training, and just before and after expansions."""

from __future__ import annotations

from itertools import product

import pandas as pd

from diagnostics.metrics.curves import mean_curves
from diagnostics.metrics.dormancy import (
    SCORES,
    TAUS,
    dormant_ratios,
    event_changes,
    lasting_layers,
)
from diagnostics.paper.names import label as paper_name
from diagnostics.plots.curves import Plot, curves
from diagnostics.studies.page import MissingDataError, Page


def measured_ratios(page: Page, score: str, tau: float) -> pd.DataFrame:
    """`dormant_ratios` of the page's runs, some of which must have recorded the score."""
    page.main_task("dormancy")
    ratios = dormant_ratios(page.runs.dormancy, score=score, tau=tau)
    if ratios.empty:
        raise MissingDataError(
            f"no run in {page.source} has {score} scores of neurons: those of schema version 1 "
            "were taken after the activation and are not read"
        )
    return ratios


def dormancy(page: Page, *, score: str, tau: float = 0.1, network: str = "online") -> Plot:
    """Share of dormant neurons of one network over training, expansions in red."""
    ratios = measured_ratios(page, score, tau)
    chosen = ratios[(ratios["network"] == network) & (ratios["phase"] == "cadence")]
    if chosen.empty:
        raise MissingDataError(f"no run in {page.source} measured the network {network!r}")
    chosen = chosen.assign(percent=100 * chosen["ratio"])
    return curves(
        mean_curves(chosen, "percent"),
        page.runs.events,
        ylabel=f"dormant ({score}) neurons, %",
        title=f"Dormant ({score}) neurons of the {network} critic",
        columns=2,
        least_top=1.0,
        expansions=True,
        remark=f" Dormant ({score}): score at most {tau:g} of its layer's mean.",
    )


def dormancy_at_expansions(page: Page, *, network: str = "online") -> pd.DataFrame:
    """The dormant ratio just before and just after expansions, on the same batch.

    One row per task, label, score and threshold: of all layers that exist at the moment, and of
    those alone that exist on both sides of the expansion ("old layers").
    """
    page.main_task("dormancy")
    measured = page.runs.dormancy
    measured = measured[measured["network"] == network]
    old = lasting_layers(measured)
    rows = []
    for score, tau in product(SCORES, TAUS):
        every, lasting = (
            event_changes(dormant_ratios(table, score=score, tau=tau)) for table in (measured, old)
        )
        names = ["task", "label", "run", "env_step", "network"]
        changes = every.merge(lasting, on=names, suffixes=("", "_old"))
        for (task, label), cells in changes.groupby(["task", "label"], sort=False):
            rows.append(
                {
                    "task": task,
                    "variant": paper_name(str(label)),
                    "dormant by": score,
                    "tau": tau,
                    "expansions": len(cells),
                    **_fall(cells["before"], cells["after"]),
                    **_fall(cells["before_old"], cells["after_old"], "old layers "),
                }
            )
    if not rows:
        raise MissingDataError(f"no run in {page.source} measured dormancy around an expansion")
    return pd.DataFrame(rows)


def _fall(before: pd.Series, after: pd.Series, of: str = "") -> dict[str, float]:
    return {
        f"{of}before (%)": 100 * before.mean(),
        f"{of}after (%)": 100 * after.mean(),
        f"{of}fell in (%)": 100 * (after < before).mean(),
    }
