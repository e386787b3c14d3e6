"""Network expansion, from the events of a run whose critics grew."""

from __future__ import annotations

import pandas as pd

from diagnostics.paper.names import label as paper_name
from diagnostics.plots.growth import Plot, growth_timeline, network_growth
from diagnostics.runs.architecture import fullest_cycle, growth, networks_of
from diagnostics.runs.directories import RunFiles
from diagnostics.studies.page import MissingDataError, Page
from diagnostics.studies.study import Study

STUDY = Study(
    name="network_expansion",
    order=4,
    variants=("fog", "expanded-sac", "fog-sac"),
    plans=("motivating_example", "expansion_ablation"),
)


def _grown(page: Page) -> tuple[RunFiles, pd.Series, pd.DataFrame]:
    """The run with most expansions, its facts and its events; the first if several."""
    page.require()
    events = page.runs.events
    counts = events[events["event"] == "expansion"].groupby("run", sort=False).size()
    known = {run.where: run for run in page.runs.files if "obs_dim" in run.manifest}
    counts = counts[counts.index.isin(list(known))]
    if counts.empty:
        raise MissingDataError(
            f"no run in {page.source} has grown yet: train `expanded-sac` or `fog` "
            "past its first expansion"
        )
    name = str(counts.idxmax())
    facts = page.runs.runs.set_index("run", drop=False).loc[name]
    return known[name], facts, events[events["run"] == name]


def blocks(page: Page) -> Plot:
    """Stages of the fullest growth between two resets: blocks, parameters, learning rates."""
    run, facts, events = _grown(page)
    stages = fullest_cycle(growth(run.config, run.manifest, events))
    spec = networks_of(run.config, run.manifest)
    title = f"{paper_name(facts['label'])} on {facts['task']}, seed {facts['seed']}: a critic grows"
    return network_growth(stages, spec=spec, title=title)


def timeline(page: Page) -> Plot:
    """Depth, parameters and learning rate over the same run."""
    run, facts, events = _grown(page)
    history = growth(run.config, run.manifest, events)
    return growth_timeline(history, float(facts["env_step"]), events)


def sizes(page: Page) -> pd.DataFrame:
    """Every start, reset and expansion of the same run, with sizes and learning rates."""
    run, _, events = _grown(page)
    return growth(run.config, run.manifest, events).drop(columns="cycle")
