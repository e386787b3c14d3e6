"""What runs say about the paper's claims: estimates with intervals, and verdicts by fixed rules.

The rules were written down before any run of `results/miniature` had been looked at:

- A contrast is *reproduced* if its 95 % interval over seeds lies above zero, *not reproduced* if it
  lies below, and *inconclusive* otherwise.
- A claim is *reproduced* if all its contrasts on all tasks are, *not reproduced* if none is and at
  least one went the other way, *inconclusive* otherwise, so also if runs for a part are missing.

Intervals are Student's (one variant) or Welch's (two). With three seeds they are wide, as they
should be: a bootstrap over three seeds never leaves their range and covers far less than 95 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from diagnostics.claims import CLAIMS, Contrast, Measure
from diagnostics.errors import AnalysisError
from diagnostics.export import SETTLED
from diagnostics.runs import Runs
from diagnostics.statistics import CONFIDENCE, Interval

Verdict = Literal["reproduced", "not reproduced", "inconclusive", "no data"]

NOTHING = Interval(float("nan"), float("nan"), float("nan"))


def evidence(runs: Runs) -> pd.DataFrame:
    """Every contrast of every claim on every task that has runs of its variants.

    Returns:
        Columns `claim`, `what`, `sides`, `task`, `estimate`, `low`, `high`, `ratio`, `counts`,
        `seeds` (of the variant with fewer), `verdict`. A contrast without runs on any task has one
        row, with no task and the verdict `no data`.

    Raises:
        AnalysisError: a variant has runs with different settings on a task.
    """
    groups = _groups(runs)
    tasks = sorted({task for task, _ in groups})
    known: dict[Measure, pd.Series] = {}
    rows = []
    for claim in CLAIMS:
        for contrast in claim.contrasts:
            if contrast.measure not in known:
                known[contrast.measure] = contrast.measure(runs)
            found = _by_task(contrast, known[contrast.measure], groups, tasks)
            for task, (numbers, seeds) in (found or {"": (NOTHING, 0)}).items():
                shown = np.exp(numbers) if contrast.ratio else numbers
                rows.append(
                    {
                        "claim": claim.name,
                        "what": contrast.what,
                        "sides": contrast.sides(),
                        "task": task,
                        "estimate": shown[0],
                        "low": shown[1],
                        "high": shown[2],
                        "ratio": contrast.ratio,
                        "counts": contrast.counts,
                        "seeds": seeds,
                        "verdict": judged(numbers) if found else "no data",
                    }
                )
    return pd.DataFrame(rows)


def _by_task(
    contrast: Contrast,
    values: pd.Series,
    groups: dict[tuple[str, str], list[str]],
    tasks: Sequence[str],
) -> dict[str, tuple[Interval, int]]:
    """The contrast and its seeds on each task that has both variants."""
    names = [name for name in (contrast.larger, contrast.smaller) if name is not None]
    found = {}
    for task in tasks:
        chosen = [values.reindex(groups.get((task, name), [])).dropna() for name in names]
        seeds = min(map(len, chosen))
        if seeds > 0:
            found[task] = difference(*(sample.to_numpy(float) for sample in chosen)), seeds
    return found


def difference(values: NDArray[np.float64], others: NDArray[np.float64] | None = None) -> Interval:
    """Mean of one sample, or difference of the means of two, with Student's or Welch's interval.

    The ends are NaN with fewer than two values in a sample: nothing is known about the width.
    """
    samples = [values] if others is None else [values, others]
    estimate = float(values.mean() - (0.0 if others is None else others.mean()))
    if min(map(len, samples)) < 2:
        return Interval(estimate, float("nan"), float("nan"))
    squares = np.array([sample.var(ddof=1) / len(sample) for sample in samples])
    error = float(np.sqrt(squares.sum()))
    if error == 0:
        return Interval(estimate, estimate, estimate)
    degrees = squares.sum() ** 2 / sum(
        square**2 / (len(sample) - 1) for square, sample in zip(squares, samples, strict=True)
    )
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, degrees)) * error
    return Interval(estimate, estimate - half, estimate + half)


def judged(found: Interval) -> Verdict:
    """The verdict on one contrast."""
    if found.low > 0:
        return "reproduced"
    return "not reproduced" if found.high < 0 else "inconclusive"


def verdict(rows: pd.DataFrame) -> Verdict:
    """The verdict on one claim, from its rows of `evidence`."""
    words = list(rows["verdict"][rows["counts"].astype(bool)])
    if all(word == "no data" for word in words):
        return "no data"
    if all(word == "reproduced" for word in words):
        return "reproduced"
    against = "not reproduced" in words and "reproduced" not in words
    return "not reproduced" if against else "inconclusive"


def _groups(runs: Runs) -> dict[tuple[str, str], list[str]]:
    """Runs that have ended, by task and variant: an unfinished one has no late part."""
    found: dict[tuple[str, str], list[str]] = {}
    ended = runs.runs[runs.runs["status"].isin(SETTLED)]
    for (task, variant), rows in ended.groupby(["task", "variant"], sort=False):
        labels = sorted(rows["label"].unique())
        if len(labels) > 1:
            raise AnalysisError(
                f"{variant} on {task} has runs with different settings ({', '.join(labels)}): "
                "give a folder that holds one kind"
            )
        found[str(task), str(variant)] = list(rows["run"])
    return found
