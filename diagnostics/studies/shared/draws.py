"""How often runs drew each transition, beside the law of their sampler."""

from __future__ import annotations

import pandas as pd

from diagnostics.paper.names import label as paper_name
from diagnostics.paper.names import ordered
from diagnostics.plots.counts import Plot, observed_counts
from diagnostics.studies.page import MissingDataError, Page


def observed(page: Page, *, bins: int = 60) -> Plot:
    """Counts at the end of training in units of beta, mean over seeds, one panel per label."""
    task = page.main_task("sample_counts")
    runs = page.of_task(task)
    table = _last(runs.sample_counts)
    facts = runs.runs.set_index("run")
    beta = (facts["replay_ratio"] * facts["batch_size"]).astype(float)
    table = table.assign(size=table["end"] - table["start"], beta=table["run"].map(beta))
    parts = []
    for label in ordered(table["label"]):
        rows = table[table["label"] == label]
        # A run that is behind has drawn less of everything: no part of the mean.
        rows = rows[rows["env_step"] == rows["env_step"].max()]
        stretch = max(1, int(rows["end"].max()) // bins)
        rows = rows.assign(part=rows["start"] // stretch, beta_size=rows["size"] * rows["beta"])
        # A bin without an expectation must not turn into one of zero.
        rows["known"] = rows["expected"].notna()
        sums = rows.groupby("part").agg(
            start=("start", "min"),
            end=("end", "max"),
            count=("count", "sum"),
            expected=("expected", "sum"),
            beta_size=("beta_size", "sum"),
            known=("known", "all"),
        )
        parts.append(
            pd.DataFrame(
                {
                    "label": label,
                    "transition": (sums["start"] + sums["end"]) / 2,
                    "observed": sums["count"] / sums["beta_size"],
                    "expected": (sums["expected"] / sums["beta_size"]).where(sums["known"]),
                    "seeds": rows["run"].nunique(),
                }
            )
        )
    joined = pd.concat(parts, ignore_index=True)
    return observed_counts(joined, title=f"Sample counts observed in real runs, {task}")


def fit(page: Page) -> pd.DataFrame:
    """Does each run's count follow its law? Mean squared deviation over variance, last snapshot."""
    task = page.main_task("sample_fit")
    table = _last(page.of_task(task).table("sample_fit"))
    if table.empty:
        raise MissingDataError(f"no run in {page.source} recorded sample_fit")
    return pd.DataFrame(
        {
            "variant": table["label"].map(paper_name),
            "seed": table["seed"],
            "sampler": table["sampler"],
            "transitions": table["transitions"],
            "draws": table["draws"],
            "chi-square / n": table["chi_square"],
            "z": table["z"],
        }
    )


def _last(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["env_step"] == table.groupby("run")["env_step"].transform("max")]
