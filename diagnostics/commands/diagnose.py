"""`fog diagnose`: does an agent suffer from primacy bias?"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import textwrap
from collections.abc import Iterable, Sequence

from diagnostics.commands.loading import loaded, problem_lines
from diagnostics.diagnosis.calibration import Calibration
from diagnostics.diagnosis.verdict import Diagnosis, Finding, diagnoses
from fog.cli.parser import Parser, pathname
from fog.cli.table import render
from fog.system.text import plain

FORMAT = 1
"""Of the JSON document; goes up when a key changes its meaning or goes away."""

_WIDTH = 100
_INDENT = " " * 11


def command(argv: Sequence[str]) -> int:
    """Print a verdict for every agent below some folders."""
    options = _options(argv)
    calibration = Calibration.read(options.calibration)
    with loaded(options.runs) as runs:
        found = diagnoses(runs, calibration)
    if options.json:
        document = {
            "format": FORMAT,
            "calibration": _provenance(calibration),
            "agents": [dataclasses.asdict(agent) for agent in found],
            "problems": runs.problems.to_dict("records"),
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return 0
    if len(found) > 1:
        rows = [[agent.task, agent.label, str(agent.seeds), agent.verdict] for agent in found]
        table = render(
            ("task", "agent", "seeds", "signs of primacy bias"), rows, right=frozenset({2})
        )
        sys.stdout.write(f"{table}\n\n")
    sys.stdout.write("\n\n".join(plain_lines(agent) for agent in found) + "\n")
    sys.stdout.write(f"\n{_calibrated(calibration)}\n")
    sys.stdout.writelines(problem_lines(runs))
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        "diagnose",
        "Tell whether agents suffer from primacy bias: a verdict, the signs behind it, and what\n"
        "to try. The seeds of one agent get one answer.",
    )
    parser.add_argument(
        "runs", type=pathname, nargs="+", metavar="RUN", help="run directories or folders of runs"
    )
    parser.add_argument(
        "--calibration",
        type=pathname,
        metavar="FILE",
        help="a table made by `fog calibrate` [the one that comes with this package]",
    )
    parser.add_argument("--json", action="store_true", help="print JSON (see docs/diagnosis.md)")
    return parser.parse(argv)


def plain_lines(agent: Diagnosis) -> str:
    """One agent's diagnosis as lines of text."""
    seeds = "1 seed" if agent.seeds == 1 else f"{agent.seeds} seeds"
    lines = [f"{agent.task}, {agent.label} ({seeds})", *_wrapped(agent.sentence, "")]
    for found in agent.findings:
        if found.state in ("present", "perhaps", "absent"):
            lines += ["", *_sign(found)]
    lines += _listed("not used", "they did not separate known agents", agent.of("not used"))
    lines += _listed("no data", "not recorded", agent.of("not recorded"))
    if agent.advice:
        lines += ["", "What to try:"]
    for advice in agent.advice:
        evidence = f"; {advice.evidence}" if advice.evidence else ""
        lines += _wrapped(f"- {advice.what}{evidence}", "  ")
        lines += [f"    {advice.command}"] if advice.command else []
    if agent.notes:
        lines += ["", *(line for note in agent.notes for line in _wrapped(note, ""))]
    return "\n".join(plain(line) for line in lines)


def _sign(found: Finding) -> Iterable[str]:
    ends = "" if found.low is None else f" [{found.low:.3g}, {found.high:.3g}]"
    beyond = (
        f"{found.beyond:.0%} of {found.numbers} {found.over} {found.worse} {found.threshold:.3g}"
    )
    yield f"  {found.state:<8} {found.sign} {_value(found)}{ends}; {beyond}"
    yield from _wrapped(f"{_among(found)}.", _INDENT)
    title = f"{found.title[0].upper()}{found.title[1:]}"
    yield from _wrapped(f"{title}. Cannot tell {found.cannot_tell}.", _INDENT)


def _value(found: Finding) -> str:
    return "" if found.value is None else f"{found.value:.3g}"


def _among(found: Finding) -> str:
    """Where it lies among agents of known dose."""
    if found.beyond_unprimed is None or found.nearest_dose is None:
        return "No agent of known dose to compare with"
    more = {1.0: "all", 0.0: "none"}.get(found.beyond_unprimed, f"{found.beyond_unprimed:.0%}")
    dose = "no priming" if found.nearest_dose == 0 else f"{found.nearest_dose:,} priming updates"
    return f"Worse than {more} of the unprimed agents; most like {dose}"


def _listed(state: str, why: str, found: Sequence[Finding]) -> list[str]:
    if not found:
        return []
    names = ", ".join(f"{one.sign} {_value(one)}".rstrip() for one in found)
    first, *others = _wrapped(f"{names} ({why})", _INDENT)
    return ["", f"  {state:<8} {first.strip()}", *others]


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def _calibrated(calibration: Calibration) -> str:
    of = _provenance(calibration)
    return (
        f"Thresholds from {of['runs']} runs of known dose on {of['task']}: "
        "SAC of width 64, 20,000 steps (docs/diagnosis.md).\n"
        "Larger agents and longer runs have not been calibrated."
    )


def _provenance(calibration: Calibration) -> dict[str, object]:
    rows = calibration.values[calibration.values["set"] == "calibration"]
    return {
        "task": calibration.task,
        "runs": len(rows),
        "commits": sorted(set(rows["commit"].dropna().astype(str))),
        "thresholds": calibration.thresholds,
    }
