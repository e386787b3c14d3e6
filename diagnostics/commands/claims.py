"""`fog claims`: judge the paper's claims, one by one, from runs."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal, NamedTuple, get_args

import pandas as pd

from diagnostics.commands.loading import add_peers, loaded, problem_lines, published
from diagnostics.commands.power import hours_text
from diagnostics.errors import AnalysisError
from diagnostics.metrics.power import MOST_SEEDS
from diagnostics.studies.claims import Claim
from diagnostics.studies.peer_claims import peer_claims, peer_evidence
from diagnostics.studies.study import claims_judged_together
from diagnostics.studies.verdicts import Verdict, judge, left_out, verdict
from fog.cli.parser import Parser, pathname
from fog.records.statuses import SETTLED

_HEADER = ("task", "variants", "measured", "estimate [95 %]", "seeds", "verdict")
_NOTES = (
    "If the paper is right, every estimate is above 1 (x) or 0. reproduced: the whole interval\n"
    "is; not reproduced: the whole interval is below; inconclusive: neither. A claim needs all\n"
    "its rows; those in brackets do not count. mixed: some rows for, all others against. by Holm:\n"
    "all contrasts of a study judged together; *: then inconclusive. 42 seeds, 2 h: so many of\n"
    "each variant decide it with 80 % power if the estimate is right, and the missing ones take\n"
    "so long to train; `fog power` says more. docs/analysis.md explains the rules."
)


class _Judged(NamedTuple):
    """Claims whose contrasts are judged together, with the rows of all of them."""

    name: str
    claims: Sequence[Claim]
    rows: pd.DataFrame

    @property
    def slug(self) -> str:
        """The name as part of a file's name."""
        return re.sub(r"\W+", "_", self.name.removeprefix("the "))

    def parts(self) -> list[tuple[Claim, pd.DataFrame]]:
        return [(claim, self.rows[self.rows["claim"] == claim.name]) for claim in self.claims]


def command(argv: Sequence[str]) -> int:
    """Print every claim with its evidence and verdict."""
    options = _options(argv)
    if options.peers is not None and options.runs is None:
        return _of_peers(options)
    options.runs = options.runs or [Path("runs")]
    with loaded(options.runs) as runs:
        # Judge each group separately, so that contrasts of one do not make the other's harder.
        groups = [
            _Judged(name, claims, judge(runs, claims))
            for name, claims in claims_judged_together().items()
        ]
    if options.peers is not None:
        groups.append(_published(options.peers))
    kept = [group for group in groups if (group.rows["seeds"] > 0).any()]
    if not kept:
        where = ", ".join(map(str, options.runs))
        if not runs.runs["status"].isin(SETTLED).any():
            raise AnalysisError(f"none of the {len(runs)} runs in {where} has ended")
        raise AnalysisError(
            f"no ended run in {where} recorded what the claims need"
            ": train the variants of a plan in plans/ or results/ with `--probes all`"
        )
    show = _json if options.json else _markdown if options.markdown else _text
    sys.stdout.write(show(kept) + "\n")
    if aside := left_out(runs):
        sys.stderr.write(
            f"left out: {len(aside)} runs of CUER with cuer_quota step, not the default reading; "
            "see docs/replay.md\n"
        )
    sys.stderr.writelines(problem_lines(runs))
    if options.figures is not None:
        _draw(kept, options.figures, [str(run.path) for run in runs.files])
    return 0


def _of_peers(options: argparse.Namespace) -> int:
    """The claims that need published runs alone."""
    group = _published(options.peers)
    show = _json if options.json else _markdown if options.markdown else _text
    sys.stdout.write(show([group]) + "\n")
    if options.figures is not None:
        _draw([group], options.figures, [str(options.peers)])
    return 0


def _published(folder: Path) -> _Judged:
    return _Judged("published runs", peer_claims(), peer_evidence(published(folder)))


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        "claims",
        "Judge the paper's claims one by one: what the runs measured, with 95 % confidence\n"
        "intervals over seeds, and whether that reproduces the claim. Runs that have not\n"
        "ended are left out.",
    )
    parser.add_argument(
        "--runs",
        type=pathname,
        nargs="+",
        help="folders of runs [runs; none with --peers]",
    )
    add_peers(parser)
    parser.add_argument(
        "--figures",
        type=pathname,
        metavar="DIR",
        help="also draw all contrasts into DIR, a figure for each group that is judged together",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown tables")
    options = parser.parse(argv)
    if options.figures is not None and options.figures.exists() and not options.figures.is_dir():
        raise AnalysisError(f"--figures: {options.figures} is a file: give a folder")
    return options


def _draw(groups: Sequence[_Judged], out: Path, runs: list[str]) -> None:
    """One figure for each group, if it has an interval to draw."""
    # Imported here: matplotlib takes a second, and a table need not wait for it.
    from diagnostics.plots.claims import claims_forest
    from diagnostics.plots.save import portable, save_figure

    drawn = [(group, *claims_forest(group.rows, group.name)) for group in groups]
    drawn = [(group, figure, table) for group, figure, table in drawn if not table.empty]
    if not drawn:
        raise AnalysisError("nothing to draw: an interval needs two seeds of a variant")
    provenance = {"runs": [portable(run) for run in runs]}
    try:
        for group, figure, table in drawn:
            save_figure(figure, f"claims_{group.slug}", out, table, provenance)
    except OSError as error:
        raise AnalysisError(f"cannot write to {out}: {error}") from None


def _text(groups: Sequence[_Judged]) -> str:
    blocks, untold = [], []
    for claim, rows in _parts(groups):
        if not (rows["seeds"] > 0).any():
            untold.append(claim.name)
            continue
        lines = [f"{claim.name}: {verdict(rows).upper()} ({_tally(rows)}{_holm(rows)})"]
        lines += wrap(claim.statement, 98)
        cells = _cells(rows, "*")
        for cell in cells:
            cell[4] += " seed" if cell[4] == "1" else " seeds"
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        tasks = {str(task) for task in rows["task"] if task}
        # Said once if there is one only: the lines are long enough.
        shared = f"{tasks.pop()}: " if len(tasks) == 1 else ""
        told = ""
        for cell in cells:
            if cell[2] != told:
                told = cell[2]
                lines.append(f"  {shared}{told}")
            task, sides, _, shown, seeds, word = (
                text.ljust(width) for text, width in zip(cell, widths, strict=True)
            )
            place = "" if shared else f"{task}  "
            lines.append(f"    {place}{sides}  {shown}  {seeds}  {word}".rstrip())
        blocks.append("\n".join(lines))
    if untold:
        blocks.append("\n".join(wrap(f"No runs for: {'; '.join(untold)}.", 98)))
    blocks += ["\n".join(wrap(_summary(group), 98)) for group in groups]
    return "\n\n".join([*blocks, _NOTES])


def _markdown(groups: Sequence[_Judged]) -> str:
    blocks = []
    for claim, rows in _parts(groups):
        told = f"{_tally(rows)}{_holm(rows)}"
        block = f"### {claim.name}: **{verdict(rows)}** ({told})\n\n{claim.statement}\n"
        if len(rows):
            lines = [_HEADER, ("---",) * len(_HEADER), *_cells(rows, "; by Holm inconclusive")]
            block += "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
        blocks.append(block)
    blocks += [f"{_summary(group)}\n" for group in groups]
    return "\n".join(blocks).rstrip()


def _json(groups: Sequence[_Judged]) -> str:
    document = [
        {
            "claim": claim.name,
            "statement": claim.statement,
            "verdict": verdict(rows),
            "holm": verdict(rows, "holm"),
            # Through JSON of pandas, which writes null for NaN.
            "evidence": json.loads(rows.drop(columns="claim").to_json(orient="records")),
        }
        for claim, rows in _parts(groups)
    ]
    return json.dumps(document, indent=2)


def _parts(groups: Sequence[_Judged]) -> list[tuple[Claim, pd.DataFrame]]:
    return [part for group in groups for part in group.parts()]


def _summary(group: _Judged) -> str:
    """The verdicts of a group in one sentence: on how many claims, and what Holm makes of them."""
    contrasts = int((group.rows["counts"].astype(bool) & group.rows["p"].notna()).sum())
    judged = "1 contrast" if contrasts == 1 else f"{contrasts} contrasts together"
    together = f"By Holm, {judged}: {_counted(group, 'holm')}."
    return f"{group.name[0].upper()}{group.name[1:]}: {_counted(group, 'verdict')}. {together}"


def _counted(group: _Judged, by: Literal["verdict", "holm"]) -> str:
    """How many claims have each verdict, in the order of `Verdict`."""
    words = [verdict(rows, by) for _, rows in group.parts()]
    return ", ".join(f"{words.count(word)} {word}" for word in get_args(Verdict) if word in words)


def _tally(rows: pd.DataFrame) -> str:
    """How many of the rows that count are for the claim, and how many against it."""
    words = list(rows["verdict"][rows["counts"].astype(bool)])
    against = words.count("not reproduced")
    return f"{words.count('reproduced')} of {len(words)} rows for, {against} against"


def _holm(rows: pd.DataFrame) -> str:
    """The verdict with all contrasts of the study judged together, where it is another."""
    word = verdict(rows, "holm")
    return "" if word == verdict(rows) else f"; by Holm {word}"


def _cells(rows: pd.DataFrame, mark: str) -> list[list[str]]:
    """A line of text for each contrast; `mark` says that it is inconclusive by Holm."""
    cells = []
    for row in rows.itertuples():
        line = [str(row.task) or "-", str(row.sides), str(row.what)]
        line.append(_estimate(row))
        word = f"{row.verdict}{_deciding(row)}" if row.counts else f"({row.verdict})"
        if row.holm != row.verdict:
            word += mark
        seeds = str(row.seeds) if row.seeds == row.ended else f"{row.seeds} of {row.ended}"
        cells.append([*line, seeds, word])
    return cells


def _deciding(row: Any) -> str:
    """Behind the verdict of a contrast that is open: what would decide it."""
    complete = row.seeds == row.ended and not math.isnan(row.low)
    # Published runs have no such columns: nobody can train more of them.
    if row.verdict != "inconclusive" or not complete or not hasattr(row, "needed"):
        return ""
    if math.isnan(row.needed):
        return f": >{MOST_SEEDS} seeds"
    return f": {row.needed:.0f} seeds{'' if math.isnan(row.hours) else f', {_time(row.hours)}'}"


def _time(hours: float) -> str:
    return f"{hours_text(hours)} h" if hours >= 1 else f"{60 * hours:.0f} min"


def _estimate(row: Any) -> str:
    if row.seeds == 0:
        return "-"
    ratio = bool(row.ratio)
    ends = f"{_number(row.low, ratio)}, {_number(row.high, ratio)}"
    if math.isnan(row.low):
        ends = "one seed" if row.seeds == 1 else "no spread"
    return f"{'x ' if ratio else ''}{_number(row.estimate, ratio)} [{ends}]"


def _number(value: float, ratio: bool) -> str:
    """Three digits; differences with their sign."""
    if abs(value) >= 1000:
        shown = f"{value:.0f}" if abs(value) < 1e6 else f"{value:.1e}"
    else:
        shown = f"{value:.3g}" if abs(value) >= 0.001 or value == 0 else f"{value:.1e}"
    return shown if ratio or value < 0 else f"+{shown}"
