"""`fog calibrate`: find which signs tell biased agents from healthy ones, in runs of known dose."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from diagnostics.commands.loading import loaded, problem_lines
from diagnostics.commands.replacing import replaceable
from diagnostics.diagnosis.calibration import (
    FACTS,
    GROUPS,
    USABLE,
    Calibration,
    Separation,
    exact_interval,
    separation,
    table,
)
from diagnostics.diagnosis.signs import SIGNS
from diagnostics.diagnosis.verdict import CLEAR, NONE, SOME, UNKNOWN, diagnoses
from diagnostics.errors import AnalysisError
from diagnostics.metrics.student import Interval
from diagnostics.runs.load import Runs
from diagnostics.studies.per_run import late_return
from fog.cli.parser import Parser, pathname, target
from fog.cli.table import render

_HEADER = ("sign", "primed : unprimed", "primed : reset", "dose", "with LayerNorm", "threshold")
_NOTES = (
    "primed : unprimed, primed : reset, with LayerNorm: area under the ROC curve [95 %]; 1 is\n"
    "perfect, 0.5 is chance. dose: rank correlation with the priming updates. A sign is used and\n"
    "has a threshold if the lower ends of the first two are at least "
    f"{USABLE:g} on the calibration task."
)


def command(argv: Sequence[str]) -> int:
    """Make the calibration table and print what it says."""
    options = _options(argv)
    replaceable(options.out, ",".join(FACTS[:4]), "an earlier calibration table")
    with loaded(options.runs) as runs:
        values = table(runs, options.task, late_return(runs)).round(6)
        _write(values, options.out)
        calibration = Calibration.read(options.out)
        for task in dict.fromkeys(calibration.values["task"]):
            sys.stdout.write(f"{_table(calibration, task)}\n\n")
        sys.stdout.write(f"{_NOTES}\n\n{_verdicts(runs, calibration)}\n")
        sys.stdout.writelines(problem_lines(runs))
    sys.stdout.write(f"Wrote {options.out}\n")
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        "calibrate",
        "Measure which signs tell primed agents from healthy ones, and write the table that\n"
        "`fog diagnose` takes its thresholds from.",
    )
    parser.add_argument(
        "--runs",
        type=pathname,
        nargs="+",
        default=[Path("results/priming/runs")],
        help="runs of the priming study [results/priming/runs]",
    )
    parser.add_argument(
        "--task",
        default="dmc:cheetah-run",
        help="task that calibrates; others are held out [dmc:cheetah-run]",
    )
    parser.add_argument(
        "--out", type=target, default=Path("calibration.csv"), help="table [calibration.csv]"
    )
    return parser.parse(argv)


def _write(values: pd.DataFrame, out: Path) -> None:
    partial = out.with_name(f".{out.name}.partial")
    try:
        values.to_csv(partial, index=False)
        partial.replace(out)
    except OSError as error:
        raise AnalysisError(f"cannot write {out}: {error.strerror}") from None


def _table(calibration: Calibration, task: str) -> str:
    rows = calibration.values[calibration.values["task"] == task]
    counts = Counter(rows["group"])
    sizes = ", ".join(f"{counts[group]} {group}" for group in GROUPS if counts[group])
    kind = rows["set"].iloc[0]
    cells = [_row(separation(sign, rows), calibration) for sign in SIGNS]
    return f"{task} ({kind}): {sizes}\n{render(_HEADER, cells, right=frozenset({5}))}"


def _row(found: Separation, calibration: Calibration) -> list[str]:
    threshold = calibration.thresholds.get(found.sign)
    return [
        found.sign,
        _shown(found.from_unprimed),
        _shown(found.from_reset),
        _shown(found.dose_response),
        _shown(found.protected),
        "-" if threshold is None else f"{threshold:.3g}",
    ]


def _shown(found: Interval) -> str:
    if found.estimate != found.estimate:
        return "-"
    return f"{found.estimate:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _verdicts(runs: Runs, calibration: Calibration) -> str:
    """How each run alone is judged, by task, group and dose."""
    finished = runs.select(status="finished")
    groups = calibration.values.set_index(["task", "variant", "seed", "dose"])["group"]
    kinds = (NONE, SOME, CLEAR, UNKNOWN)
    counts: dict[tuple[str, str], Counter[str]] = {}
    for run in finished.runs.to_dict("records"):
        key = (run["task"], run["variant"], run["seed"], int(run["priming_updates"] or 0))
        (alone,) = diagnoses(finished.select(run=run["run"]), calibration, every=False)
        counts.setdefault((key[0], str(groups.loc[key])), Counter())[alone.verdict] += 1
    tasks = list(dict.fromkeys(task for task, _ in counts))
    cells = [
        [task, group, str(sum(found.values())), *(str(found[kind]) for kind in kinds)]
        for task in tasks
        for group in GROUPS
        if (found := counts.get((task, group)))
    ]
    header = ("task", "group", "runs", *kinds)
    lines = [render(header, cells, right=frozenset({2, 3, 4, 5, 6})), ""]
    for task in tasks:
        primed, unprimed = (counts.get((task, kind), Counter()) for kind in ("primed", "unprimed"))
        right = (primed[CLEAR], sum(primed.values()))
        clean = (sum(unprimed.values()) - unprimed[CLEAR], sum(unprimed.values()))
        lines.append(f"{task}: sensitivity {_share(*right)}, specificity {_share(*clean)}")
    lines += [
        "Sensitivity: primed runs with clear signs. Specificity: unprimed runs without. Each run",
        "is judged alone; intervals are exact (Clopper and Pearson).",
    ]
    return "\n".join(lines)


def _share(count: int, of: int) -> str:
    if of == 0:
        return "unknown"
    low, high = exact_interval(count, of)
    return f"{count} of {of} [{low:.0%}, {high:.0%}]"
