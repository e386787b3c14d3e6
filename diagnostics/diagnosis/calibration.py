"""How well each sign tells agents with a known dose of primacy bias from healthy ones.

The table `diagnostics/data/calibration.csv` has one row per run of the priming study and one column
per sign. Everything else follows from it: which signs a verdict may use, and their thresholds.
`fog calibrate` makes it from runs.

Groups of runs, by what is known about the networks:

- `primed`: SAC without LayerNorm, primed with 10,000 updates or more on its first transitions, with
  no cure. The claim that this harms it was written down before the runs.
- `unprimed`: the same settings without priming, LayerNorm or not, reset or not.
- `reset`: primed, but every weight was reset since. No primed weight is left.
- `protected`: primed, with LayerNorm.
- `treated`: primed, with ER decay or growth and no reset.
- `low dose`: primed with fewer updates.

A sign is used if it separates `primed` from `unprimed` and from `reset` on the calibration task:
the lower end of both 95 % intervals of the area under the ROC curve is at least `USABLE`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from diagnostics.diagnosis.signs import BY_NAME, SIGNS, Sign, measured
from diagnostics.errors import AnalysisError
from diagnostics.metrics.student import CONFIDENCE, Interval
from diagnostics.runs.load import Runs

FloatArray = NDArray[np.float64]

HARMFUL_DOSE = 10_000
"""Priming updates from which the study expected harm."""

USABLE = 0.8
RESAMPLES = 2_000
GROUPS = ("primed", "unprimed", "reset", "protected", "treated", "low dose")

FACTS = (
    "set", "task", "variant", "seed", "dose", "layer_norm", "cure", "group", "late_return", "commit"
)  # fmt: skip


@dataclass(frozen=True)
class Separation:
    """One sign against known agents of one task.

    Attributes:
        from_unprimed: area under the ROC curve, primed against unprimed: 1 if every primed run has
            more of the sign than every unprimed one, 0.5 by chance, 0 if it is the other way round.
        from_reset: the same, against runs that were reset after the priming.
        dose_response: Spearman's rank correlation with the dose, uncured runs without LayerNorm;
            positive if the sign grows with the dose in the expected direction.
        protected: as `from_unprimed`, for runs with LayerNorm at the harmful doses.
    """

    sign: str
    primed: int
    unprimed: int
    reset: int
    from_unprimed: Interval
    from_reset: Interval
    dose_response: Interval
    protected: Interval


@dataclass(frozen=True)
class Calibration:
    """The table and what follows from it."""

    values: pd.DataFrame

    @classmethod
    def read(cls, path: Path | None = None) -> Calibration:
        """The committed table, or one of your own.

        Raises:
            AnalysisError: the file cannot be read or lacks a column.
        """
        source = path or files("diagnostics").joinpath("data", "calibration.csv")
        try:
            with source.open("r", encoding="utf-8") as lines:
                values = pd.read_csv(lines)
        except (OSError, ValueError, pd.errors.ParserError) as error:
            raise AnalysisError(f"cannot read the calibration {source}: {error}") from None
        missing = [name for name in (*FACTS, *BY_NAME) if name not in values]
        if missing:
            raise AnalysisError(
                f"the calibration {source} lacks the column {missing[0]!r}: "
                "make it again with `fog calibrate`"
            )
        if not (values["set"] == "calibration").any():
            raise AnalysisError(f"the calibration {source} has no run that calibrates")
        return cls(values)

    @property
    def task(self) -> str:
        """The task whose runs decide."""
        return str(self.values["task"][self.values["set"] == "calibration"].iloc[0])

    @cached_property
    def separations(self) -> dict[str, Separation]:
        """By sign, on the calibration task."""
        rows = self.values[self.values["set"] == "calibration"]
        return {sign.name: separation(sign, rows) for sign in SIGNS}

    @cached_property
    def thresholds(self) -> dict[str, float]:
        """Of the signs that a verdict may use."""
        rows = self.values[self.values["set"] == "calibration"]
        return {
            name: threshold(BY_NAME[name], rows)
            for name, found in self.separations.items()
            if min(found.from_unprimed.low, found.from_reset.low) >= USABLE
        }


def table(runs: Runs, task: str, late_return: pd.Series) -> pd.DataFrame:
    """The calibration table of finished runs of the priming study.

    Args:
        runs: runs that differ in task, variant, seed, dose and cure.
        task: whose runs calibrate; the others are held out.
        late_return: of each run.

    Raises:
        AnalysisError: no finished run of that task is among them.
    """
    runs = runs.select(status="finished")
    facts = runs.runs
    if not (facts["task"] == task).any():
        known = ", ".join(sorted(set(facts["task"]))) or "none"
        raise AnalysisError(f"no finished run of {task!r} to calibrate with (tasks: {known})")
    frame = pd.DataFrame(
        {
            "set": np.where(facts["task"] == task, "calibration", "held out"),
            "task": facts["task"],
            "variant": facts["variant"],
            "seed": facts["seed"],
            "dose": facts["priming_updates"].fillna(0).astype(int),
            "layer_norm": facts["critic_layer_norm"].astype(bool),
            "cure": [_cure(run) for run in facts.to_dict("records")],
            "late_return": facts["run"].map(late_return),
            "commit": facts["git_commit"],
        }
    )
    frame.insert(FACTS.index("group"), "group", [_group(*row) for row in _known(frame)])
    numbers = measured(runs).reset_index(drop=True)
    whole = pd.concat([frame.reset_index(drop=True), numbers], axis=1)
    return whole.sort_values(["set", "task", "dose", "variant", "seed"], ignore_index=True)


def _known(frame: pd.DataFrame) -> Iterable[tuple[int, bool, str]]:
    return zip(frame["dose"], frame["layer_norm"], frame["cure"], strict=True)


def _cure(run: dict[str, Any]) -> str:
    """What the run does against primacy bias, apart from LayerNorm."""
    resets = len(run.get("reset_steps") or ())
    does = {
        "one_reset": resets == 1,
        "reset": resets > 1,
        "decay": run.get("sampler") == "decay",
        "growth": grows(run),
    }
    return "+".join(name for name, done in does.items() if done) or "none"


def grows(config: Mapping[str, Any]) -> bool:
    """Whether its critics gain blocks."""
    room = (config.get("maximal_depth") or 0) > (config.get("initial_depth") or 0)
    return bool(config.get("expansion_updates")) and room


def _group(dose: int, layer_norm: bool, cure: str) -> str:
    if dose == 0:
        return "unprimed"
    if "reset" in cure:
        return "reset"
    if dose < HARMFUL_DOSE:
        return "low dose"
    if layer_norm:
        return "protected"
    return "primed" if cure == "none" else "treated"


def separation(sign: Sign, rows: pd.DataFrame) -> Separation:
    """How well one sign separates the groups of one task's rows."""
    rows = rows[rows[sign.name].notna()]
    by_group = {
        group: _oriented(sign, rows[rows["group"] == group])
        for group in ("primed", "unprimed", "reset")
    }
    uncured = rows[rows["cure"] == "none"]
    plain, normed = uncured[~uncured["layer_norm"]], uncured[uncured["layer_norm"]]
    return Separation(
        sign.name,
        len(by_group["primed"]),
        len(by_group["unprimed"]),
        len(by_group["reset"]),
        area(by_group["primed"], by_group["unprimed"]),
        area(by_group["primed"], by_group["reset"]),
        correlation(plain["dose"], _oriented(sign, plain)),
        area(
            _oriented(sign, normed[normed["group"] == "protected"]),
            _oriented(sign, normed[normed["group"] == "unprimed"]),
        ),
    )


def threshold(sign: Sign, rows: pd.DataFrame) -> float:
    """The value that best separates primed runs from unprimed and reset ones.

    Best by Youden's index (sensitivity + specificity - 1). Between two neighbouring values any
    threshold is as good: the middle is taken, of the widest gap if several are best.
    """
    sick = _oriented(sign, rows[rows["group"] == "primed"])
    healthy = _oriented(sign, rows[rows["group"].isin(["unprimed", "reset"])])
    values = np.unique(np.concatenate([sick, healthy]))
    middles, gaps = (values[1:] + values[:-1]) / 2, np.diff(values)
    youden = np.array([np.mean(sick > at) + np.mean(healthy < at) - 1 for at in middles])
    best = np.flatnonzero(youden >= youden.max() - 1e-12)
    chosen = float(middles[best[np.argmax(gaps[best])]])
    return chosen if sign.higher else -chosen


def area(sick: ArrayLike, healthy: ArrayLike, seed: int = 0) -> Interval:
    """Area under the ROC curve: the chance that a sick run has more than a healthy one.

    The interval is a bootstrap over the runs of both groups. It has no width if the groups do not
    overlap at all.
    """
    a, b = np.asarray(sick, np.float64), np.asarray(healthy, np.float64)
    if not (len(a) and len(b)):
        return Interval(float("nan"), float("nan"), float("nan"))
    wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(a), (RESAMPLES, len(a), 1))
    columns = rng.integers(0, len(b), (RESAMPLES, 1, len(b)))
    low, high = np.quantile(wins[rows, columns].mean(axis=(1, 2)), [0.025, 0.975])
    return Interval(float(wins.mean()), float(low), float(high))


def exact_interval(count: int, of: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share: `count` of `of` independent runs."""
    tail = (1 - confidence) / 2
    low = float(betaincinv(count, of - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 1 - tail)) if count < of else 1.0
    return low, high


def correlation(dose: ArrayLike, values: ArrayLike, seed: int = 0) -> Interval:
    """Spearman's rank correlation with its bootstrap interval over runs."""
    x, y = np.asarray(dose, np.float64), np.asarray(values, np.float64)
    if len(x) < 3 or len(np.unique(x)) < 2:
        return Interval(float("nan"), float("nan"), float("nan"))
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, len(x), (RESAMPLES, len(x)))
    low, high = np.nanquantile(_spearman(x[picks], y[picks]), [0.025, 0.975])
    return Interval(float(_spearman(x[None], y[None])[0]), float(low), float(high))


def _spearman(x: FloatArray, y: FloatArray) -> FloatArray:
    """The correlation of the ranks, row by row; NaN where one side is constant."""
    a, b = (_ranks(values) for values in (x, y))
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    spread = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    found = (a * b).sum(axis=1) / np.where(spread > 0, spread, 1)
    return np.asarray(np.where(spread > 0, found, np.nan), np.float64)


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks within each row; equal values share the mean of theirs."""
    less = (values[:, :, None] > values[:, None, :]).sum(axis=2)
    equal = (values[:, :, None] == values[:, None, :]).sum(axis=2)
    return np.asarray(less + equal / 2, np.float64)


def _oriented(sign: Sign, rows: pd.DataFrame) -> FloatArray:
    """Values with the sign turned so that more means more bias."""
    turn = 1.0 if sign.higher else -1.0
    return np.asarray(turn * rows[sign.name].dropna(), np.float64)
