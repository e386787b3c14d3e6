"""`fog power`: estimate how many seeds would decide a claim."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diagnostics.commands.loading import loaded, problem_lines
from diagnostics.errors import AnalysisError, unknown
from diagnostics.metrics.power import MOST_SEEDS, TARGET, Needed, missing_hours, seeds_needed
from diagnostics.studies.claims import Claim
from diagnostics.studies.study import claims_judged_together
from diagnostics.studies.verdicts import Sample, samples_of
from fog.cli.parser import Parser, pathname
from fog.cli.table import render

_HEADER = (
    *("task", "variants", "measured", "effect", "now"),
    *("Welch", "bootstrap", "paired", "hours"),
)
_NOTES = (
    f"Seeds of each variant for {TARGET:.0%} power: the chance that the whole 95 % interval is on\n"
    "the effect's side. effect: the difference seen in these runs, and half of it (or --effect).\n"
    "Ratios are natural logarithms. now: seeds there are. bootstrap: seeds drawn from these\n"
    "runs, not a normal distribution. paired: if all variants share their seeds. >: more than\n"
    "that. hours: of training the missing seeds (Welch's) one by one, at the speed of these runs."
)


def command(argv: Sequence[str]) -> int:
    """Print how many seeds each contrast of a claim needs."""
    options = _options(argv)
    if options.effect is not None:
        _check_effect(options)
    groups = claims_judged_together().values()
    beside = {claim.name: group for group in groups for claim in group}
    claims = {claim.name: claim for group in groups for claim in group}
    chosen = list(claims.values()) if options.claim is None else _named(options.claim, claims)
    with loaded(options.runs) as runs:
        rows = [
            row
            for claim in chosen
            for sample in samples_of(runs, claim, beside[claim.name])
            for row in _rows(claim, sample, options.effect)
        ]
    if not rows:
        raise AnalysisError(
            f"no ended runs in {', '.join(map(str, options.runs))} have two seeds of the "
            "variants that the claim compares"
        )
    if options.json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        sys.stdout.write(_text(rows) + "\n")
    sys.stderr.writelines(problem_lines(runs))
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        "power",
        "Estimate how many seeds would decide a claim, from the spread of existing runs: for the\n"
        "effect they show, for half of it, or for an effect you give.",
    )
    parser.add_argument(
        "--runs", type=pathname, nargs="+", default=[Path("runs")], help="folders of runs [runs]"
    )
    parser.add_argument(
        "--claim",
        metavar="NAME",
        help="a claim of `fog claims`, or how the names of several begin [all]",
    )
    parser.add_argument(
        "--effect",
        type=float,
        metavar="X",
        help="effect to detect, in the units of the measure",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse(argv)


def _check_effect(options: argparse.Namespace) -> None:
    if not (np.isfinite(options.effect) and options.effect):
        raise AnalysisError(f"--effect: a number other than 0, got {options.effect:g}")
    if options.claim is None:
        raise AnalysisError(
            "--effect needs --claim: returns, points and logarithms of ratios have no common unit"
        )


def _named(text: str, claims: dict[str, Claim]) -> list[Claim]:
    """The claim of that name, or else all whose names begin like that."""
    if text in claims:
        return [claims[text]]
    if not text.strip():
        raise unknown("claim", text, list(claims))
    matches = [claim for name, claim in claims.items() if name.lower().startswith(text.lower())]
    if not matches:
        raise unknown("claim", text, list(claims))
    return matches


def _rows(claim: Claim, sample: Sample, effect: float | None) -> list[dict[str, Any]]:
    shown = float(sample.values[0].mean())
    if len(sample.values) == 2:
        shown -= float(sample.values[1].mean())
    effects = {"observed": shown, "half": shown / 2} if effect is None else {"given": effect}
    rows = []
    for name, size in effects.items():
        needed = seeds_needed(size, sample.values, paired=sample.paired)
        rows.append(
            {
                "claim": claim.name,
                "task": sample.task,
                "sides": sample.contrast.sides(),
                "what": sample.contrast.what,
                "counts": sample.contrast.counts,
                "effect": name,
                "size": size,
                "seeds": min(map(len, sample.values)),
                "spreads": [float(np.std(values, ddof=1)) for values in sample.values],
                **needed._asdict(),
                "hours": missing_hours(needed.welch, sample.values, sample.hours),
            }
        )
    return rows


def hours_text(hours: float) -> str:
    """Two digits are more than a first pilot knows."""
    return f"{hours:.2g}" if hours < 10 else f"{hours:,.0f}"


def _text(rows: list[dict[str, Any]]) -> str:
    blocks = []
    for claim in dict.fromkeys(row["claim"] for row in rows):
        cells = []
        for row in (row for row in rows if row["claim"] == claim):
            needed = Needed(row["welch"], row["bootstrap"], row["paired"])
            cells.append(
                [
                    row["task"],
                    row["sides"] if row["counts"] else f"({row['sides']})",
                    row["what"],
                    f"{row['effect']} {row['size']:+.3g}",
                    str(row["seeds"]),
                    *(f">{MOST_SEEDS}" if at is None else str(at) for at in needed[:2]),
                    "-" if needed.paired is None else str(needed.paired),
                    "-" if row["hours"] is None else hours_text(row["hours"]),
                ]
            )
        blocks.append(f"{claim}\n" + render(_HEADER, cells, right=frozenset({4, 5, 6, 7, 8})))
    return "\n\n".join([*blocks, _NOTES])
