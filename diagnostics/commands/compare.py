"""`fog compare`: compare variants in the terminal."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from diagnostics.commands.loading import add_grid, add_peers, loaded, problem_lines
from diagnostics.errors import AnalysisError, unknown
from diagnostics.paper import tables as paper
from diagnostics.report.compare import SORTABLE, TAU, compare
from diagnostics.runs.load import Runs
from fog.cli.parser import Parser, pathname
from fog.cli.table import render

_HEADER = (
    "variant",
    "seeds",
    "final",
    "best",
    "IQM of final [95 %]",
    "primacy",
    "dormant grad.",
    "dormant act.",
    "updates/s",
    "status",
)
_NOTES = (
    "final: mean of the last evaluations. best: mean of each seed's best evaluation before its\n"
    "last step, the paper's rule, {grid};\n"
    "it is below final where the last evaluation is the highest, or the best one is off the grid.\n"
    "primacy: ln(loss of newest / oldest experience), above 0 if the newest is fitted worse. It\n"
    "did not tell agents of known bias from healthy ones; `fog diagnose` uses signs that did.\n"
    "dormant grad., dormant act.: share of the critic's neurons whose gradient (the paper's\n"
    f"text), or activation (the work it cites), is <= {TAU:g} of their layer's mean."
)
_OFF_GRID = (
    "best is - where no evaluation before the last step is on that grid: --grid all takes them all."
)


def command(argv: Sequence[str]) -> int:
    """Print the comparison of all runs below some folders."""
    options = _options(argv)
    with loaded(options.runs, options.grid, options.peers) as runs:
        for name, wanted in (("task", options.task), ("variant", options.variant)):
            runs = _selected(runs, name, wanted)
        if len(runs) == 0:
            where = ", ".join(map(str, options.runs))
            raise AnalysisError(f"no run in {where} has both that task and that variant")
        table = compare(runs, sort=options.sort)
    if options.json:
        document = {
            "rows": [
                {name: _plain(value) for name, value in row.items()}
                for row in table.to_dict("records")
            ],
            "problems": runs.problems.to_dict("records"),
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return 0
    for task, rows in table.groupby("task", sort=False):
        sys.stdout.write(f"{_title(str(task), rows)}\n{_rendered(rows)}\n\n")
    sys.stdout.write(_NOTES.format(grid=_grid(table)) + "\n")
    if (table["best"].isna() & table["final"].notna()).any() and (table["grid"] != "all").all():
        sys.stdout.write(_OFF_GRID + "\n")
    sys.stdout.writelines(problem_lines(runs))
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser("compare", "Compare variants: scores, primacy bias, dormancy, speed.")
    parser.add_argument(
        "--runs", type=pathname, nargs="+", default=[Path("runs")], help="folders of runs [runs]"
    )
    parser.add_argument("--task", nargs="+", default=[], metavar="T", help="only these tasks")
    parser.add_argument("--variant", nargs="+", default=[], metavar="V", help="only these variants")
    parser.add_argument(
        "--sort",
        default="variant",
        metavar="C",
        help=f"column to sort by: {', '.join(SORTABLE)} [variant]",
    )
    add_grid(parser)
    add_peers(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse(argv)
    if options.sort not in SORTABLE:
        raise unknown("column to sort by", options.sort, SORTABLE)
    return options


def _selected(runs: Runs, name: str, wanted: Sequence[str]) -> Runs:
    for value in wanted:
        known = sorted(set(runs.identity[name]))
        if value not in known:
            raise unknown(f"{name} among these runs", value, known)
    return runs.select(**{name: list(wanted)}) if wanted else runs


def _title(task: str, rows: pd.DataFrame) -> str:
    """The task, how it is scored, and what the paper printed for it."""
    measure = "success rate" if (rows["metric"] == "success").all() else "return"
    cells = paper.printed()
    cells = cells[cells["task"] == task]
    if cells.empty:
        return f"{task} ({measure})"
    printed = ", ".join(f"{cell.algorithm} {cell.mean:.2f}" for cell in cells.itertuples())
    return f"{task} ({measure}); best in the paper at {cells['steps'].iloc[0]:,} steps: {printed}"


def _grid(table: pd.DataFrame) -> str:
    """Among which evaluations the best one was looked for."""
    name = table["grid"].iloc[0]
    if name == "all":
        return "among all evaluations"
    steps = sorted(set(table["grid_steps"]))
    here = " and ".join(f"{value:,.0f}" for value in steps)
    return f"among those on the grid of {name} steps at scale 1 ({here} steps here)"


def _rendered(rows: pd.DataFrame) -> str:
    cells = [
        [
            str(row.label),
            str(row.seeds),
            _shown(row.final),
            _shown(row.best),
            f"{_shown(row.iqm)}{_ends(row.iqm_low, row.iqm_high)}",
            _shown(row.primacy, "+.2f"),
            _shown(row.dormant_gradient, ".1%"),
            _shown(row.dormant_activation, ".1%"),
            _shown(row.updates_per_second, ".0f"),
            str(row.status),
        ]
        for row in rows.itertuples()
    ]
    header = [f"best ({rows['grid'].iloc[0]})" if name == "best" else name for name in _HEADER]
    return render(header, cells, right=frozenset({1, 2, 3, 5, 6, 7, 8}))


def _shown(value: float, form: str | None = None) -> str:
    if math.isnan(value):
        return "-"
    return format(value, form or (".2f" if abs(value) < 10 else ".1f"))


def _ends(low: float, high: float) -> str:
    return "" if math.isnan(low) else f" [{_shown(low)}, {_shown(high)}]"


def _plain(value: Any) -> Any:
    """JSON has no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
