"""A full overview of one run."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from diagnostics.diagnosis.calibration import Calibration
from diagnostics.diagnosis.verdict import diagnoses
from diagnostics.errors import AnalysisError
from diagnostics.metrics.internals import curves_inside
from diagnostics.paper.names import label as paper_name
from diagnostics.plots import age
from diagnostics.plots.card import Plot, run_inside, run_overview
from diagnostics.plots.curves import curves
from diagnostics.studies.page import MissingDataError, Page
from diagnostics.studies.shared.dormancy import measured_ratios
from diagnostics.studies.study import Study

STUDY = Study(name="run_card", order=20)

_FACTS = (
    "status",
    "reason",
    "env_step",
    "steps",
    "updates",
    "final_return",
    "best_return",
    "grid",
    "updates_per_second",
    "started",
    "ended",
    "git_commit",
    "problems",
)


def pick(page: Page, run: str | None) -> Page:
    """The page with one run only: the one named, else the first that recorded most tables."""
    names = page.runs.identity["run"]
    if run is not None:
        chosen = [name for name in names if name == run or name.rstrip("/").endswith(run)]
        if not chosen:
            raise AnalysisError(f"no run {run!r} in {page.source}: name a run directory below it")
    else:
        tables = {
            str(files.path): len(list((files.path / "probes").glob("*")))
            for files in page.runs.files
        }
        chosen = [max(names, key=lambda name: tables[name])]
    runs = page.runs.select(run=chosen[:1])
    parameters = {**page.parameters, "run": chosen[0]}
    return replace(page, runs=runs, tasks=tuple(runs.identity["task"]), parameters=parameters)


def overview(page: Page) -> Plot:
    """Six panels over training."""
    runs = page.runs
    facts = runs.runs.iloc[0]
    if runs.evals.empty and runs.train.empty:
        raise MissingDataError(f"{facts['run']} has recorded nothing yet")
    title = f"{paper_name(facts['label'])} on {facts['task']}, seed {facts['seed']}"
    return run_overview(runs.evals, runs.train, runs.events, title=title)


def facts(page: Page) -> pd.DataFrame:
    """Status, scores, speed and versions of the run."""
    row = page.runs.runs.iloc[0]
    versions = page.runs.files[0].manifest.get("versions", {})
    told = {name: row.get(name) for name in _FACTS}
    told |= {f"{name} version": version for name, version in versions.items()}
    return pd.DataFrame({"fact": list(told), "value": [_text(value) for value in told.values()]})


def diagnosis(page: Page) -> pd.DataFrame:
    """The verdict on primacy bias, and the signs behind it (`fog diagnose`)."""
    (found,) = diagnoses(page.runs, Calibration.read())
    rows = [("verdict", found.sentence, "", "", "")]
    for one in found.findings:
        value = "" if one.value is None else f"{one.value:.3g}"
        ends = "" if one.low is None else f"{one.low:.3g} to {one.high:.3g}"
        limit = "" if one.threshold is None else f"{one.threshold:.3g}"
        rows.append((one.sign, one.state, value, ends, limit))
    return pd.DataFrame(rows, columns=["sign", "state", "value", "95 %", "threshold"])


def config(page: Page) -> pd.DataFrame:
    """Every setting of the run."""
    settings = page.runs.files[0].config
    if not settings:
        raise MissingDataError(f"{page.runs.identity['run'].iloc[0]} has no config.yaml")
    return pd.DataFrame(
        {"setting": list(settings), "value": [_text(value) for value in settings.values()]}
    )


def events(page: Page) -> pd.DataFrame:
    """Resets, expansions, checkpoints and whatever else happened."""
    table = page.runs.events
    if table.empty:
        raise MissingDataError("the run has recorded no events")
    kept = ["env_step", "event", "updates", "depth", "dense_layers", "critic_lr", "detail"]
    return table[[name for name in kept if name in table]]


def dormancy(page: Page, *, score: str, tau: float = 0.1) -> Plot:
    """Dormant neurons of every network of the run."""
    ratios = measured_ratios(page, score, tau)
    cadence = ratios[ratios["phase"] == "cadence"]
    if cadence.empty:
        raise MissingDataError("the run measured dormancy around events only")
    table = pd.DataFrame(
        {
            "task": cadence["task"],
            "label": cadence["network"],
            "env_step": cadence["env_step"],
            "mean": 100 * cadence["ratio"],
            "low": float("nan"),
            "high": float("nan"),
            "seeds": 1,
        }
    )
    return curves(
        table,
        page.runs.events,
        ylabel=f"dormant ({score}) neurons, %",
        title=f"Dormant ({score}) neurons by network",
        least_top=1.0,
        expansions=True,
        remark=f" Dormant ({score}): score at most {tau:g} of its layer's mean.",
    )


_INSIDE = ("srank", "dormancy", "layer_norms", "update_churn", "disagreement")


def inside(page: Page) -> Plot:
    """Ranks, activity, step sizes, churn and disagreement over training."""
    tables = {name: page.runs.table(name) for name in _INSIDE}
    if all(table.empty for table in tables.values()):
        probes = "srank,dormancy,norms,churn,disagreement"
        raise MissingDataError(f"the run has none of these tables: train with the probes {probes}")
    return run_inside(curves_inside(**tables), page.runs.events, title="Inside the networks")


def warmstart(page: Page) -> Plot:
    """Today's critic against a fresh one on the newest data."""
    page.main_task("warmstart")
    title = "Is new data still learned as well as by a fresh critic?"
    return age.warm_start(page.runs.warmstart, page.runs.events, title=title)


def offpolicy(page: Page) -> Plot:
    """How far the policy has moved from what is stored."""
    page.main_task("offpolicy")
    return age.off_policy(page.runs.offpolicy, title="How old is too old?")


def interference(page: Page) -> Plot:
    """Whether old and new data pull the critic the same way."""
    page.main_task("interference")
    tables = (page.runs.interference, page.runs.table("interference_rank"), page.runs.events)
    return age.interference(*tables, title="Do old and new data pull the critic the same way?")


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
