"""The primacy-bias index over training, and the variants ranked by it."""

from __future__ import annotations

import pandas as pd

from diagnostics.metrics import primacy
from diagnostics.metrics.curves import mean_curves
from diagnostics.paper.names import label as paper_name
from diagnostics.paper.names import ordered
from diagnostics.plots.curves import Plot, index_curves
from diagnostics.runs.load import Runs
from diagnostics.studies.page import MissingDataError, Page


def indices(runs: Runs, quantity: str = "scaled") -> pd.DataFrame:
    """The primacy-bias index of every column of every run, by the online critic's loss."""
    loss = runs.critic_loss
    loss = loss[loss["critic"] == "online"]
    parts = []
    for _, rows in loss.groupby("run", sort=False):
        width = int((rows["window_end"] - rows["window_start"]).max())
        steps, values = primacy.column_indices(
            rows["env_step"], rows["window"], rows[quantity], rows["count"], width
        )
        first = rows.iloc[0]
        names = {name: first[name] for name in ("task", "variant", "seed", "label", "run")}
        parts.append(pd.DataFrame({**names, "env_step": steps, "index": values}))
    columns = ["task", "variant", "seed", "label", "run", "env_step", "index"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def index_summary(table: pd.DataFrame) -> pd.DataFrame:
    """Per label the mean index over training with its 95 % interval, least bias first."""
    usable = table.dropna(subset=["index"])
    per_seed = {
        label: [run["index"].to_numpy() for _, run in rows.groupby("run")]
        for label, rows in usable.groupby("label")
    }
    ranked = primacy.rank({name: per_seed[name] for name in ordered(per_seed)})
    return pd.DataFrame(
        {
            "label": [entry.variant for entry in ranked],
            "index_mean": [entry.index.estimate for entry in ranked],
            "low": [entry.index.low for entry in ranked],
            "high": [entry.index.high for entry in ranked],
            "seeds": [entry.seeds for entry in ranked],
            "behind": [entry.behind.estimate for entry in ranked],
            "behind_low": [entry.behind.low for entry in ranked],
            "behind_high": [entry.behind.high for entry in ranked],
        }
    )


def primacy_index(page: Page, *, quantity: str = "scaled") -> Plot:
    """The index over training and its ranking."""
    task = page.main_task("critic_loss")
    runs = page.of_task(task)
    table = indices(runs, quantity)
    if not table["index"].notna().any():
        raise MissingDataError(
            f"no index on {task}: it needs a measurement with at least two complete windows"
        )
    title = f"Primacy-bias index, {task}"
    summary = index_summary(table)
    return index_curves(mean_curves(table, "index"), summary, runs.events, title=title)


def primacy_ranking(page: Page, *, quantity: str = "scaled") -> pd.DataFrame:
    """The ranking as a table, with how far the next one is behind."""
    task = page.main_task("critic_loss")
    table = indices(page.of_task(task), quantity)
    if not table["index"].notna().any():
        raise MissingDataError(f"no index on {task}")
    summary = index_summary(table)
    return pd.DataFrame(
        {
            "variant": summary["label"].map(paper_name),
            "index": summary["index_mean"],
            "95 % low": summary["low"],
            "95 % high": summary["high"],
            "seeds": summary["seeds"],
            "next one minus this": summary["behind"],
            "its 95 % low": summary["behind_low"],
            "its 95 % high": summary["behind_high"],
        }
    )
