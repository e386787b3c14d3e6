"""t-SNE of critic features, one panel for each variant."""

from __future__ import annotations

import numpy as np
import pandas as pd

from diagnostics.metrics.embedding import Embedding, Settings, embed
from diagnostics.paper.names import ordered
from diagnostics.plots.curves import Plot
from diagnostics.plots.embedding import tsne_panels
from diagnostics.runs.load import Runs
from diagnostics.studies.page import MissingDataError, Page


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
