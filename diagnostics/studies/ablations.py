"""The ablations: what decides which experience is replayed, and whether the critics grow."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

from diagnostics.metrics import statistics
from diagnostics.metrics.curves import mean_curves
from diagnostics.metrics.dormancy import SCORES, TAUS, dormant_ratios, event_changes, lasting_layers
from diagnostics.metrics.embedding import Embedding, Settings, embed
from diagnostics.paper.names import label as paper_name
from diagnostics.paper.names import ordered
from diagnostics.plots.curves import Plot, curves
from diagnostics.plots.embedding import tsne_panels
from diagnostics.runs.load import Runs
from diagnostics.studies.page import MissingDataError, Page

REPLAY = ("fog", "fog-per", "fog-cuer", "fog-uniform")
EXPANSION = ("fog", "fog-fixed2", "fog-fixed4")


def scores(page: Page, *, seed: int = 0) -> pd.DataFrame:
    """Final and best return of every label on every task, mean with 95 % interval over seeds."""
    page.require()
    facts, best = page.runs.runs, page.runs.grid.rule("best_score")
    rows = []
    for task in page.tasks:
        of_task = facts[facts["task"] == task]
        for label in ordered(of_task["label"]):
            cells = of_task[of_task["label"] == label]
            rows.append(
                {
                    "task": task,
                    "variant": paper_name(label),
                    "final": _cell(cells["final_score"], seed),
                    best: _cell(cells["best_score"], seed),
                    "seeds": len(cells),
                    "metric": cells["metric"].iloc[0],
                }
            )
        for name in page.wanted:
            if name not in set(of_task["variant"]):
                gap = {"final": "missing", best: "missing", "seeds": 0, "metric": ""}
                rows.append({"task": task, "variant": paper_name(name), **gap})
    return pd.DataFrame(rows)


def _cell(values: pd.Series, seed: int) -> str:
    known = values.dropna().to_numpy(float)
    if not len(known):
        return "missing"
    if len(known) == 1:
        return f"{known[0]:,.4g} (1 seed)"
    found = statistics.interval(statistics.mean, known[:, None], np.random.default_rng(seed))
    return f"{found.estimate:,.4g} [{found.low:,.4g}, {found.high:,.4g}]"


def buffer_loss(page: Page, *, share: float = 0.3, column: str = "offline_critic_loss") -> Plot:
    """Training loss of the offline ("buffer") critic over the first part of training.

    Args:
        page: The notebook's page.
        share: Of the run; the paper shows the first 300k of 1M steps.
        column: Of train.csv; the default is the critic that learns from the buffer alone.
    """
    page.require()
    train = page.runs.train
    if column not in train or not train[column].notna().any():
        raise MissingDataError(f"no run in {page.source} has a column {column!r} in train.csv")
    train = train.merge(page.runs.runs[["run", "steps"]], on="run")
    early = train[train["env_step"] <= share * train["steps"]]
    table = mean_curves(early, column)
    if table.empty:
        raise MissingDataError(f"no run in {page.source} has trained in its first {share:.0%}")
    events = page.runs.events.merge(page.runs.runs[["run", "steps"]], on="run")
    events = events[events["env_step"] <= share * events["steps"]]
    return curves(
        table,
        events,
        ylabel="offline critic loss",
        title=f"Critic buffer loss, first {share:.0%} of training",
        columns=2,
        log=True,
        expansions=True,
        remark=" Loss on the minibatches it is trained on.",
    )


def measured_ratios(page: Page, score: str, tau: float) -> pd.DataFrame:
    """`dormant_ratios` of the page's runs.

    Raises:
        MissingDataError: no run recorded the score.
    """
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


def snapshots(runs: Runs, at: float) -> dict[str, pd.DataFrame]:
    """Features of every label's first seed, at the snapshot nearest to the share `at` of it."""
    features = runs.features
    steps = runs.runs.set_index("run")["steps"]
    found = {}
    for label in ordered(features["label"]):
        rows = features[features["label"] == label]
        rows = rows[rows["seed"] == rows["seed"].min()]
        run = rows["run"].iloc[0]
        rows = rows[rows["run"] == run]
        moments = rows["env_step"].unique()
        moment = moments[np.argmin(np.abs(moments - at * steps[run]))]
        found[label] = rows[rows["env_step"] == moment]
    return found


def tsne(
    page: Page,
    *,
    at: float = 0.2,
    points: int = 2000,
    perplexity: float = 30.0,
    iterations: int = 1000,
    seed: int = 0,
) -> Plot:
    """t-SNE of penultimate critic features, one panel per label, with quality numbers."""
    task = page.main_task("features")
    settings = Settings(perplexity=perplexity, iterations=iterations, seed=seed)
    embeddings: dict[str, Embedding] = {}
    inserted, remarks = {}, []
    rng = np.random.default_rng(seed)
    for label, rows in snapshots(page.of_task(task), at).items():
        if len(rows) > points:
            rows = rows.iloc[np.sort(rng.choice(len(rows), points, replace=False))]
        try:
            embeddings[label] = embed(np.stack(list(rows["features"])), settings)
        except ValueError as error:
            raise MissingDataError(f"{label}: {error}") from None
        inserted[label] = rows["transition"].to_numpy(np.int64)
        remarks.append(f"seed {rows['seed'].iloc[0]}, env step {rows['env_step'].iloc[0]:,}")
    title = f"t-SNE of the critic's features, {task}"
    return tsne_panels(embeddings, inserted, title=title, remarks=remarks)
