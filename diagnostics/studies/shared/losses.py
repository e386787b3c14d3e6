"""Critic loss by age of the data: heatmaps, their ratio, and the newest against the oldest."""

from __future__ import annotations

import numpy as np
import pandas as pd

from diagnostics.metrics.loss_grid import LossGrid, diagonal, log_ratio, loss_grids
from diagnostics.paper.names import label as paper_name
from diagnostics.plots import heatmaps
from diagnostics.plots.curves import Plot
from diagnostics.runs.load import Runs
from diagnostics.studies.page import MissingDataError, Page


def loss_heatmaps(
    page: Page, *, quantity: str = "mean", critic: str = "online", task: str | None = None
) -> Plot:
    """Critic-loss heatmaps of one task's variants on a shared colour scale."""
    task = task or page.main_task("critic_loss")
    runs = page.of_task(task)
    grids = _grids(page, runs, quantity, critic)
    kind = "Scale-free critic loss" if quantity == "scaled" else "Critic loss"
    title = f"{kind} by age of the data, {task}"
    return heatmaps.loss_heatmaps(grids, runs.events, quantity=quantity, title=title)


def _grids(page: Page, runs: Runs, quantity: str, critic: str) -> dict[str, LossGrid]:
    grids = loss_grids(runs.critic_loss, quantity, critic)
    if not grids:
        raise MissingDataError(
            f"no run in {page.source} recorded the loss of the {critic} critic: "
            "train with the probe critic_loss"
        )
    return grids


def loss_ratio(page: Page, *, first: str, second: str, quantity: str = "mean") -> Plot:
    """log10 of the loss of one variant over that of another."""
    task = page.main_task("critic_loss")
    runs = page.of_task(task)
    grids = _grids(page, runs, quantity, "online")
    for name in (first, second):
        if name not in grids:
            raise MissingDataError(f"no critic-loss heatmap of {name} on {task} in {page.source}")
    try:
        ratio = log_ratio(grids[first], grids[second])
    except ValueError as error:
        raise MissingDataError(str(error)) from None
    over, under = paper_name(first), paper_name(second)
    kind = "scale-free loss" if quantity == "scaled" else "loss"
    return heatmaps.ratio_heatmap(
        ratio,
        runs.events[runs.events["label"] == second],
        title=f"{over} against {under}, {kind}, {task}",
        bar=f"log10 ({over} / {under})\npositive: {under} fits better",
    )


def diagonals(page: Page, *, quantity: str = "mean") -> pd.DataFrame:
    """Mean over measurements of the loss on the newest and on the oldest window, per variant."""
    task = page.main_task("critic_loss")
    grids = _grids(page, page.of_task(task), quantity, "online")
    rows = []
    for name, grid in grids.items():
        ends = diagonal(grid)
        newest, oldest = (np.exp(np.log(ends[key]).mean()) for key in ("newest", "oldest"))
        rows.append(
            {
                "variant": paper_name(name),
                "newest window": newest,
                "oldest window": oldest,
                "newest / oldest": newest / oldest,
                "seeds": grid.seeds,
            }
        )
    return pd.DataFrame(rows)
