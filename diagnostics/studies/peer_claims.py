"""Is FoG ahead of each opponent in each suite? Judged from printed cells and public seeds.

FoG's own seeds are not public. Its cells are: mean and population deviation of three seeds, which
is all that an interval for a difference of means needs. Rows without data mark what this is not
enough for: the last evaluation instead of the best, and the same grid of evaluations for all.

A difference is that of normalised scores (over the suite's constant), averaged over the tasks that
both sides have; its interval is Welch's, over seeds, with Satterthwaite's degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from diagnostics.metrics import student
from diagnostics.metrics.scores import Grid
from diagnostics.metrics.student import Interval
from diagnostics.paper import tables as paper
from diagnostics.paper.methods import method
from diagnostics.peers.load import Peers
from diagnostics.peers.scores import scores
from diagnostics.studies.claims import Claim
from diagnostics.studies.verdicts import Verdict, judged, together

OWN = "FoG"
SIDES: dict[str, tuple[str, ...]] = {
    "TD-MPC2": ("tdmpc2",),
    "SimBa": ("simba-utd2",),
    "BRO": ("bro-utd2",),
}
"""The files behind the paper's columns, see `diagnostics.peers.cells`."""

LATER: dict[str, tuple[str, ...]] = {
    "TD-MPC2": (),
    "SimBa": ("simbav2-utd2", "xqc"),
    "BRO": ("bro-utd10",),
}
"""Shown in brackets: BRO at FoG's replay ratio, and methods published after the paper."""

Sample = tuple[float, float, int]
"""Mean, sample variance and number of seeds."""


@dataclass(frozen=True)
class Difference:
    """FoG against one opponent on one group of tasks."""

    estimate: float
    low: float
    high: float
    p: float
    seeds: int
    tasks: int


def peer_claims() -> tuple[Claim, ...]:
    """The claims, without contrasts of variants: `peer_evidence` holds their rows."""
    means = paper.printed_normalised()
    means = means[means["group"] == paper.TOTAL].set_index("algorithm")["mean"]
    extra = {
        "TD-MPC2": " On HumanoidBench the paper claims comparable capabilities only.",
        "SimBa": " In brackets: SimBaV2 and XQC, published later.",
        "BRO": " The paper's column is BRO at replay ratio 2; FoG runs at 10."
        " In brackets: BRO at 10.",
    }
    return tuple(
        Claim(
            f"FoG is ahead of {name}",
            f"FoG outperforms {name}: {means[OWN]:.2f} against {means[name]:.2f} over 41 tasks "
            "(normalised)." + extra[name],
            (),
        )
        for name in SIDES
    )


def peer_evidence(peers: Peers) -> pd.DataFrame:
    """One row per claim, suite and source of the opponent's numbers, as `evidence.evidence`."""
    cells = _printed()
    public = _public(peers)
    rows: list[dict[str, object]] = []
    groups = [*dict.fromkeys(paper.tasks()["group"]), paper.TOTAL]
    for opponent, files in SIDES.items():
        claim = f"FoG is ahead of {opponent}"
        sides = [
            (_BEST + ", printed cells", f"{OWN} against {opponent}", cells[opponent], True),
        ]
        for name in (*files, *LATER[opponent]):
            what = f"{_BEST}, printed cells against public seeds"
            sides.append((what, _against(name), public.get(name, {}), name in files))
        for what, shown, samples, counts in sides:
            for group in groups:
                found = _difference(cells[OWN], samples, group)
                rows.append(_row(claim, what, shown, group, found, counts))
        for name in files:
            rows.append(_row(claim, _UNKNOWN, _against(name), "", None, False))
    table = pd.DataFrame(rows)
    return table.assign(holm=together(table))


_BEST = "normalised score, best before T"
_UNKNOWN = "last evaluation, and best on one grid: FoG's seeds are not public"


def _against(name: str) -> str:
    return f"{OWN} against {method(name).label}"


def _row(
    claim: str, what: str, sides: str, group: str, found: Difference | None, counts: bool
) -> dict[str, object]:
    verdict: Verdict = "no data"
    if found is not None:
        verdict = judged(Interval(found.estimate, found.low, found.high))
    known = found or Difference(np.nan, np.nan, np.nan, np.nan, 0, 0)
    total = len(paper.tasks()) if group == paper.TOTAL else _sizes().get(group, 0)
    partly = 0 < known.tasks < total
    return {
        "claim": claim,
        "what": what,
        "sides": sides,
        "task": f"{group} ({known.tasks} of {total} tasks)" if partly else group,
        "estimate": known.estimate,
        "low": known.low,
        "high": known.high,
        "ratio": False,
        # A part of the tasks, or none, must not decide about the suite.
        "counts": counts and known.tasks == total,
        "seeds": known.seeds,
        "ended": known.seeds,
        "p": known.p,
        "verdict": verdict,
    }


def _sizes() -> dict[str, int]:
    return {str(group): int(size) for group, size in paper.tasks()["group"].value_counts().items()}


def _printed() -> dict[str, dict[str, Sample]]:
    """Each algorithm's cells, normalised: of three seeds the sample variance is 3/2 s squared."""
    table = paper.printed()
    mean = table["mean"] / table["normaliser"]
    variance = (table["std"] / table["normaliser"]) ** 2 * paper.SEEDS / (paper.SEEDS - 1)
    found: dict[str, dict[str, Sample]] = {}
    for name, task, m, v in zip(table["algorithm"], table["task"], mean, variance, strict=True):
        found.setdefault(name, {})[task] = (float(m), float(v), paper.SEEDS)
    return found


def _public(peers: Peers) -> dict[str, dict[str, Sample]]:
    """Each method's runs under the paper's rule, on their own grid, normalised."""
    wanted = [name for pair in (SIDES, LATER) for names in pair.values() for name in names]
    present = [name for name in wanted if name in peers.methods]
    table = scores(peers.select(present), Grid(None))
    normaliser = paper.tasks().set_index("name")["normaliser"]
    table["score"] = table["best_score"] / table["task"].map(normaliser).astype(float)
    return samples_of(table)


def samples_of(table: pd.DataFrame) -> dict[str, dict[str, Sample]]:
    """Mean, sample variance and seeds by method and task, from one row per run."""
    found: dict[str, dict[str, Sample]] = {}
    known = table[table["score"].notna()]
    for (name, task), rows in known.groupby(["method", "task"], observed=True, sort=False):
        values = rows["score"].to_numpy(float)
        spread = float(values.var(ddof=1)) if len(values) > 1 else np.nan
        found.setdefault(str(name), {})[str(task)] = (float(values.mean()), spread, len(values))
    return found


def _difference(
    ours: Mapping[str, Sample], theirs: Mapping[str, Sample], group: str
) -> Difference | None:
    groups = paper.tasks().set_index("name")["group"]
    tasks = [task for task in ours if task in theirs and group in (paper.TOTAL, groups[task])]
    if not tasks:
        return None
    pairs = [(ours[task], theirs[task]) for task in tasks]
    estimate = float(np.mean([own[0] - other[0] for own, other in pairs]))
    sides: Sequence[Sample] = [side for pair in pairs for side in pair]
    squares = np.array([variance / seeds for _, variance, seeds in sides]) / len(tasks) ** 2
    degrees = np.array([seeds - 1 for _, _, seeds in sides], float)
    found = student.interval(estimate, squares, degrees)
    p = student.p_value(estimate, squares, degrees)
    seeds = min(seeds for _, _, seeds in sides)
    return Difference(estimate, found.low, found.high, p, seeds, len(tasks))
