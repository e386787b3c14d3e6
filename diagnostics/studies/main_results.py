"""The main results in the paper's form: curves by suite, normalised scores, the seven tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from diagnostics.metrics.curves import mean_curves
from diagnostics.metrics.scores import curve, normalise
from diagnostics.paper import tables as paper
from diagnostics.paper.names import label as paper_name
from diagnostics.paper.names import ordered
from diagnostics.peers.scores import mean_over_tasks
from diagnostics.plots.curves import MANY, Plot, curves
from diagnostics.plots.multiples import highlighted
from diagnostics.plots.scores import score_bars
from diagnostics.studies.page import MissingDataError, Page
from diagnostics.studies.study import Study

STUDY = Study(
    name="main_results",
    order=7,
    plans=("main_mujoco", "main_dmc", "main_metaworld", "main_humanoidbench"),
)

OTHER = "Other"
MISSING = "missing"
_RULE = "this project's rule"


def groups() -> list[str]:
    """The paper's task groups in its order, and one for tasks outside the paper."""
    return [*dict.fromkeys(paper.tasks()["group"]), OTHER]


def grouped(page: Page) -> pd.DataFrame:
    """`Runs.runs` with the paper's group of every task; tasks outside the paper are "Other"."""
    facts = page.runs.runs
    known = paper.tasks().set_index("name")["group"]
    return facts.assign(group=facts["task"].map(known).fillna(OTHER))


def learning_curves(page: Page, *, group: str) -> Plot:
    """Return or success rate of one group's tasks, mean and 95 % interval over seeds."""
    page.require()
    facts = grouped(page)
    chosen = facts[facts["group"] == group]
    if chosen.empty:
        raise MissingDataError(f"no run of a task in {group} in {page.source}")
    success = bool((chosen["metric"] == "success").any())
    means = curve(page.runs.evals)
    means = means[means["run"].isin(set(chosen["run"]))]
    table = mean_curves(means, "success_once" if success else "return")
    if table.empty:
        raise MissingDataError(f"no run of a task in {group} has been evaluated yet")
    ylabel = "success rate" if success else "evaluation return"
    title = f"Learning curves, {group}{_scales(chosen)}"
    if table["task"].nunique() == 1 and table["label"].nunique() > MANY:
        return highlighted(table, page.runs.events, ylabel=ylabel, title=title)
    return curves(
        table,
        page.runs.events,
        ylabel=ylabel,
        title=title,
        columns=4 if table["task"].nunique() > 4 else 2,
    )


def _scales(facts: pd.DataFrame) -> str:
    scales = sorted({f"{scale:g}" for scale in facts["scale"].dropna()})
    return "" if scales == ["1"] else f" (scale {', '.join(scales)})"


def _apart(facts: pd.DataFrame) -> str:
    """What runs that are shorter than the paper's are called; nothing if all are as long."""
    scales = _scales(facts)
    return f"this project\n{scales.strip()}" if scales else ""


def normalised_bars(
    page: Page, *, normalisation: str = "by_constant", score: str = "best_score"
) -> Plot:
    """Normalised scores by group, with the paper's methods where they can be compared.

    `by_constant` divides by a constant of the suite, so the paper's means can stand beside ours;
    `by_best_run` divides by the best of the runs on disk, the paper's rule, which says nothing
    about runs that are not there. `score` is `best_score` (the paper's rule) or `final_score`.
    """
    page.require()
    table = normalise(grouped(page), score)
    table = table[table[normalisation].notna()]
    if table.empty:
        raise MissingDataError(
            f"no run in {page.source} has a normalised score ({page.runs.grid.rule(score)}): "
            "outside the paper's 41 tasks there is no normaliser, shares of a best return need "
            "positive returns, and a run shorter than the grid has no evaluation on it"
        )
    present = [group for group in groups() if group in set(table["group"])]
    rows = []
    if normalisation == "by_constant":
        rows += _paper_rows(present)
    for label in ordered(table["label"]):
        for group in present:
            cells = table[(table["label"] == label) & (table["group"] == group)]
            rows.append(_bar(label, group, cells, normalisation))
    rule = page.runs.grid.rule(score)
    over = "a constant of the suite" if normalisation == "by_constant" else "the best run on disk"
    return score_bars(
        pd.DataFrame(rows),
        title=f"Normalised score ({rule} / {over})",
        ylabel="normalised score",
        apart=_apart(table),
    )


def _bar(label: str, group: str, cells: pd.DataFrame, column: str) -> dict[str, object]:
    row = {"group": group, "method": label, "source": "run", "tasks": cells["task"].nunique()}
    if cells.empty:
        return {**row, "score": np.nan, "low": np.nan, "high": np.nan, "seeds": 0}
    by_task = {str(task): rows[column].to_numpy() for task, rows in cells.groupby("task")}
    seeds = min(map(len, by_task.values()))
    found = mean_over_tasks(
        {
            task: (values.mean(), values.var(ddof=1) if len(values) > 1 else np.nan, len(values))
            for task, values in by_task.items()
        }
    )
    return {**row, "score": found.estimate, "low": found.low, "high": found.high, "seeds": seeds}


def _paper_rows(present: list[str]) -> list[dict[str, object]]:
    table = paper.fixed_normalised()
    return [
        {
            "group": row.group,
            "method": row.algorithm,
            "source": "paper",
            "score": row.mean,
            "low": np.nan,
            "high": np.nan,
            "tasks": np.nan,
            "seeds": paper.SEEDS,
        }
        for row in table.itertuples(index=False)
        if row.group in present
    ]


def paper_table(page: Page, *, group: str, score: str = "best_score") -> pd.DataFrame:
    """One of the paper's per-task tables, with a column for each label on disk beside it.

    Cells are mean ± population standard deviation, as printed in the paper. A cell without a run
    says so; one seed has no deviation. The last column names the rule behind this project's cells.
    """
    facts = grouped(page)
    own = facts[facts["group"] == group]
    labels = ordered(own["label"])
    printed = paper.printed()
    printed = printed[printed["group"] == group]
    rows = []
    for task, cells in printed.groupby("task", sort=False):
        row = {"task": task}
        for cell in cells.itertuples():
            row[f"{cell.algorithm} (paper)"] = f"{cell.mean:.2f} ± {cell.std:.2f}"
        for label in labels or [""]:
            values = own[(own["label"] == label) & (own["task"] == task)][score].dropna()
            row[_column(label, own)] = _mean_std(values)
        rows.append({**row, _RULE: page.runs.grid.rule(score)})
    return pd.DataFrame(rows)


def _column(label: str, own: pd.DataFrame) -> str:
    if not label:
        return "this project"
    return f"{paper_name(label)}{_scales(own[own['label'] == label])}"


def _mean_std(values: pd.Series) -> str:
    if not len(values):
        return MISSING
    if len(values) == 1:
        return f"{values.iloc[0]:.2f} (1 seed)"
    return f"{values.mean():.2f} ± {values.std(ddof=0):.2f} ({len(values)} seeds)"


def normalised_table(page: Page, *, score: str = "best_score") -> pd.DataFrame:
    """The normalised-score table: printed, recomputed from the paper's tables, and this project.

    The paper divides by the best single run, known within bounds only, so the recomputed entry is a
    bracket. This project's entries divide by the best run on disk.
    """
    recomputed = paper.recomputed_normalised()
    facts = normalise(grouped(page), score) if len(page.runs) else page.runs.runs
    rows = []
    for group in [*groups()[:-1], paper.TOTAL]:
        row = {"group": group}
        for cell in recomputed[recomputed["group"] == group].itertuples():
            row[f"{cell.algorithm} (paper)"] = f"{cell.mean:.2f} ± {cell.std:.2f}"
            if cell.algorithm == "FoG":
                bracket = f"{cell.mean_low:.2f} to {cell.mean_high:.2f}"
                row["FoG, recomputed"] = bracket + ("" if cell.consistent else " (differs)")
        for label in ordered(facts["label"]):
            cells = facts[facts["label"] == label]
            if group != paper.TOTAL:
                cells = cells[cells["group"] == group]
            means = cells.groupby("task")["by_best_run"].mean().dropna()
            text = f"{means.mean():.2f} ({len(means)} tasks)" if len(means) else MISSING
            row[paper_name(label)] = text
        rows.append({**row, _RULE: page.runs.grid.rule(score)})
    return pd.DataFrame(rows)
