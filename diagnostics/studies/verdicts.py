"""What runs say about the paper's claims: estimates with intervals, and verdicts by fixed rules.

The rules were written down before any run had been looked at:

- A contrast is *reproduced* if its 95 % interval over seeds lies above zero, *not reproduced* if it
  lies below, and *inconclusive* otherwise.
- A claim is *reproduced* if all its contrasts on all tasks are, *not reproduced* if none is and at
  least one went the other way, *inconclusive* otherwise, so also if runs for a part are missing.
  Where every contrast is decided, some each way, the claim is called *mixed*: the first rules had
  no word for that, and more seeds would not change it.
- A run that diverged has no number, because it trained for a shorter time. A contrast with such a
  run, or with one that did not record what is needed, is at best inconclusive. So is one with a run
  whose config cannot be read: nobody knows what it measured.

Intervals are Student's (one variant) or Welch's (two). With three seeds they are wide, as they
should be: a bootstrap over three seeds never leaves their range and covers far less than 95 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from diagnostics.errors import AnalysisError
from diagnostics.metrics.holm import holm
from diagnostics.metrics.power import missing_hours, welch_seeds
from diagnostics.metrics.student import CONFIDENCE, Interval, compared
from diagnostics.runs.labels import another_cuer
from diagnostics.runs.load import Runs
from diagnostics.studies.claims import PLAIN, Claim, Contrast, Measure, primed, variants_of
from fog.records.statuses import SETTLED

Verdict = Literal["reproduced", "not reproduced", "mixed", "inconclusive", "no data"]

NOTHING = Interval(float("nan"), float("nan"), float("nan"))

SIZE = (
    "scale",
    "steps",
    "width",
    "batch_size",
    "replay_ratio",
    "action_repeat",
    "termination",
)
"""Settings in which all runs of one task must agree."""

_HINT = ": give a folder that holds one kind"


def judge(runs: Runs, claims: Sequence[Claim]) -> pd.DataFrame:
    """Every contrast of every claim on every task that has runs of its variants.

    Returns:
        Columns `claim`, `what`, `sides`, `task`, `means` (over seeds, of each variant; of a ratio
        the geometric ones), `estimate`, `low`, `high`, `ratio`, `counts`, `seeds` (runs with a
        number, of the variant with fewer), `ended` (those and the runs without one, of the variant
        that lost more), `p` (two-sided), `verdict`, and `holm`: the verdict if all contrasts of
        `claims` that count are judged together (Holm 1979). `needed` are the seeds of each variant
        that decide the contrast with 80 % power if the estimate is right (NaN if more than a
        thousand), `hours` the training of those that are missing, one by one. A contrast without
        numbers on a task has the verdict `no data`; one without runs on any task has one such row,
        with no task.

    Raises:
        AnalysisError: runs of one task differ in size, runs of one variant differ in anything else,
            or a seed appears twice.
    """
    groups = _groups(runs, variants_of(claims))
    finished = set(runs.runs["run"][runs.runs["status"] == "finished"]) - _unknown(runs)
    took = _hours(runs.runs)
    known: dict[Measure, pd.Series] = {}
    rows = []
    for claim in claims:
        for contrast in claim.contrasts:
            if contrast.measure not in known:
                values = _numbers(contrast.measure, runs)
                known[contrast.measure] = values[values.index.isin(finished)]
            for found in _by_task(contrast, known[contrast.measure], groups, took):
                shown = np.exp(found.numbers) if contrast.ratio else found.numbers
                rows.append(
                    {
                        "claim": claim.name,
                        "what": contrast.what,
                        "sides": contrast.sides(),
                        "task": found.task,
                        "means": found.means,
                        "estimate": shown[0],
                        "low": shown[1],
                        "high": shown[2],
                        "ratio": contrast.ratio,
                        "counts": contrast.counts,
                        "seeds": found.seeds,
                        "ended": found.ended,
                        "p": found.p,
                        "verdict": found.verdict,
                        "needed": found.needed,
                        "hours": found.hours,
                    }
                )
    table = pd.DataFrame(rows).astype({"needed": float, "hours": float})
    return table.assign(holm=together(table))


def together(table: pd.DataFrame) -> list[Verdict]:
    """Verdicts of the contrasts that count, judged together; of the others their own."""
    judged_together = table["counts"].astype(bool) & table["p"].notna()
    adjusted = pd.Series(np.nan, index=table.index)
    adjusted[judged_together] = holm(table["p"][judged_together].to_numpy(float))
    undecided = judged_together & ~(adjusted < 1 - CONFIDENCE)
    return list(table["verdict"].where(~undecided, "inconclusive"))


class _Found(NamedTuple):
    """A contrast on one task."""

    task: str
    numbers: Interval
    p: float
    seeds: int
    ended: int
    means: tuple[float, ...] = ()
    needed: int | None = None
    hours: float | None = None

    @property
    def verdict(self) -> Verdict:
        if self.seeds == 0:
            return "no data"
        return judged(self.numbers) if self.seeds == self.ended else "inconclusive"


Groups = dict[str, dict[str, list[str]]]
"""Ended runs by task and variant."""


def _by_task(
    contrast: Contrast, values: pd.Series, groups: Groups, took: pd.Series
) -> list[_Found]:
    """The contrast on each task that has runs of one of its variants."""
    names = [name for name in (contrast.larger, contrast.smaller) if name is not None]
    found = []
    for task, variants in sorted(groups.items()):
        ended = [variants.get(name, []) for name in names]
        if task in contrast.not_on or not any(ended):
            continue
        parts = [values.reindex(group).dropna() for group in ended]
        samples = [part.to_numpy(float) for part in parts]
        seeds = min(map(len, samples))
        lost = max(len(group) - len(sample) for group, sample in zip(ended, samples, strict=True))
        numbers, p = compared(*samples) if seeds else (NOTHING, float("nan"))
        needed = welch_seeds(numbers.estimate, samples) if seeds else None
        hours = missing_hours(needed, samples, [took[part.index].median() for part in parts])
        means = tuple(float(sample.mean()) for sample in samples) if seeds else ()
        if contrast.ratio:
            means = tuple(np.exp(means).tolist())
        found.append(_Found(task, numbers, p, seeds, seeds + lost, means, needed, hours))
    return found or [_Found("", NOTHING, float("nan"), 0, 0)]


def _numbers(measure: Measure, runs: Runs) -> pd.Series:
    """One number per run; a run that went to infinity has none."""
    values = measure(runs)
    return values[np.isfinite(values.astype(float))]


def _hours(facts: pd.DataFrame) -> pd.Series:
    """How long each run trained. Not from its first to its last moment: it may have waited."""
    facts = facts.set_index("run")
    return facts["updates"] / facts["updates_per_second"] / 3600


class Sample(NamedTuple):
    """The numbers behind a contrast on one task: one array for each of its variants.

    `paired` if entry i of all arrays comes from the same seed, and so from the same warm-up.
    `hours` is how long a run of each variant trained, in the median; NaN if no run says so.
    """

    contrast: Contrast
    task: str
    values: tuple[NDArray[np.float64], ...]
    paired: bool
    hours: tuple[float, ...]


def samples_of(runs: Runs, claim: Claim, beside: Sequence[Claim] = ()) -> list[Sample]:
    """The numbers of a claim's contrasts, wherever each variant has two seeds.

    `beside` are the claims that it is judged with: what they call variants of their own, such as
    agents without LayerNorm, is not taken for this claim's.
    """
    groups = _groups(runs, variants_of([claim, *beside]))
    facts = runs.runs[runs.runs["status"] == "finished"].set_index("run")
    took = _hours(runs.runs)
    found = []
    for contrast in claim.contrasts:
        measured = _numbers(contrast.measure, runs)
        measured = measured[measured.index.isin(facts.index)]
        names = [name for name in (contrast.larger, contrast.smaller) if name is not None]
        for task, variants in sorted(groups.items()):
            parts = [measured.reindex(variants.get(name, [])).dropna() for name in names]
            if min(map(len, parts)) < 2:
                continue
            hours = tuple(float(took[part.index].median()) for part in parts)
            parts = [part.set_axis(facts["seed"][part.index]).sort_index() for part in parts]
            paired = len(parts) == 2 and parts[0].index.equals(parts[1].index)
            arrays = tuple(part.to_numpy(float) for part in parts)
            found.append(Sample(contrast, task, arrays, paired, hours))
    return found


def judged(found: Interval) -> Verdict:
    """The verdict on one contrast."""
    if found.low > 0:
        return "reproduced"
    return "not reproduced" if found.high < 0 else "inconclusive"


def verdict(rows: pd.DataFrame, by: Literal["verdict", "holm"] = "verdict") -> Verdict:
    """The verdict on one claim, from its rows of `judge`: judged one by one, or together.

    Judged together, rows can only lose their verdicts, and so can the claim: it is inconclusive
    where its remaining rows would say something else than all of them.
    """
    word = _of(rows["verdict"][rows["counts"].astype(bool)])
    if by == "verdict" or word == _of(rows["holm"][rows["counts"].astype(bool)]):
        return word
    return "inconclusive"


def _of(column: pd.Series) -> Verdict:
    words = set(column)
    if words <= {"no data"}:
        return "no data"
    if words == {"reproduced"}:
        return "reproduced"
    if words == {"reproduced", "not reproduced"}:
        return "mixed"
    against = "not reproduced" in words and "reproduced" not in words
    return "not reproduced" if against else "inconclusive"


def left_out(runs: Runs) -> list[str]:
    """Runs that no claim is judged by: CUER in the reading that makes it forget fastest.

    With `cuer_quota` step (all runs older than the setting), draws fall off as exp(-age / length of
    the warm-up), which is not what the paper compares FoG with; see docs/replay.md.
    """
    return [str(run.path) for run in runs.files if another_cuer(run.config)]


def _unknown(runs: Runs) -> set[str]:
    """Runs without settings; only their folders say which task and variant they are of."""
    return {run.where for run in runs.files if not run.config}


def _unread(runs: Runs) -> set[str]:
    """Runs whose manifest is lost: nobody knows whether they ended, so they count as a gap."""
    return {run.where for run in runs.files if not run.manifest}


def _groups(runs: Runs, wanted: frozenset[str]) -> Groups:
    """Runs that have ended, by task and variant: an unfinished one has no late part.

    Runs that are primed or without their LayerNorm are separate variants, see `Contrast`.
    """
    facts = runs.runs.assign(variant=_names(runs.runs, wanted))
    settled = facts["status"].isin(SETTLED) | facts["run"].isin(_unread(runs))
    ended = facts[settled & facts["variant"].isin(wanted)]
    ended = ended[~ended["run"].isin(left_out(runs))]
    found: Groups = {}
    for task, of_task in ended.groupby("task", sort=False):
        for name in (name for name in SIZE if name in of_task):
            sizes = sorted(of_task[name].dropna().unique())
            if len(sizes) > 1:
                listed = ", ".join(v if isinstance(v, str) else f"{v:g}" for v in sizes)
                raise AnalysisError(f"runs on {task} cannot be compared: {name} {listed}{_HINT}")
        for variant, rows in of_task.groupby("variant", sort=False):
            labels = sorted(rows["label"][~rows["run"].isin(_unknown(runs))].unique())
            if len(labels) > 1:
                listed = ", ".join(labels)
                raise AnalysisError(
                    f"{variant} on {task} has runs with different settings ({listed}){_HINT}"
                )
            if rows["seed"].duplicated().any():
                seed = rows["seed"][rows["seed"].duplicated()].iloc[0]
                twice = ", ".join(sorted(rows["run"][rows["seed"] == seed]))
                raise AnalysisError(
                    f"{variant} on {task} appears twice with seed {seed}: leave one out of {twice}"
                )
            found.setdefault(str(task), {})[str(variant)] = list(rows["run"])
    return found


def _names(facts: pd.DataFrame, wanted: frozenset[str]) -> list[str]:
    """What contrasts call the runs. Variants that never have LayerNorm go by their bare name."""
    nothing = pd.Series(float("nan"), facts.index)
    doses = pd.to_numeric(facts.get("priming_updates", nothing)).fillna(0).astype(int)
    norms = facts.get("critic_layer_norm", nothing)
    names = []
    for variant, norm, dose in zip(facts["variant"], norms, doses, strict=True):
        plain = primed(variant + PLAIN, dose)
        names.append(plain if norm is False and plain in wanted else primed(variant, dose))
    return names
