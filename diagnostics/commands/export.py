"""`fog export`: copy runs as small tables, to commit or publish."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from diagnostics.errors import AnalysisError
from fog.cli.parser import Parser, pathname


def command(argv: Sequence[str]) -> int:
    """Copy the runs that have ended and print their size."""
    parser = Parser(
        "export",
        "Copy ended runs, without checkpoints and with each probe table joined into one file, so\n"
        "that they can be committed or published. Copies are run directories: every command reads\n"
        "them. --out is a new or empty folder, or an earlier export of the same runs.",
    )
    parser.add_argument("--runs", type=pathname, default=Path("runs"), help="folder of runs [runs]")
    parser.add_argument("--out", type=pathname, required=True, help="folder for the copies")
    parser.add_argument(
        "--without", nargs="+", default=[], metavar="TABLE", help="probe tables to leave out"
    )
    parser.add_argument(
        "--last",
        nargs="+",
        default=[],
        metavar="TABLE",
        help="probe tables of which the last measurement is enough",
    )
    parser.add_argument(
        "--rounded",
        action="store_true",
        help="a third of the size: measured numbers keep four digits, neurons' scores and\n"
        "features two; evaluations stay exact",
    )
    parser.add_argument(
        "--keep-host",
        action="store_true",
        help="keep the machine's name, absolute paths and the full command line",
    )
    options = parser.parse(argv)
    # Imported here: pyarrow takes a second, and mistakes in flags should be reported before.
    from diagnostics.runs.export import export

    try:
        done = export(
            options.runs,
            options.out,
            without=options.without,
            last=options.last,
            rounded=options.rounded,
            keep_host=options.keep_host,
        )
    except OSError as error:
        raise AnalysisError(f"cannot write to {options.out}: {error}") from None
    for path, reason in done.left_out.items():
        _say(f"left out, {reason}: {path}")
    for line in done.damaged:
        _say(f"incomplete, {line}")
    _say(f"{len(done.runs)} runs, {done.nbytes / 1e6:.1f} MB, in {options.out}")
    return 0 if done.runs and not done.damaged and not done.unreadable else 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
