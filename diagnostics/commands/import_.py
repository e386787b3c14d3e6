"""`fog import`: import published curves of other methods, to set beside our runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from diagnostics.errors import AnalysisError
from fog.cli.parser import Parser, pathname
from fog.system.text import plain


def command(argv: Sequence[str]) -> int:
    """Read checkouts of the repositories that publish curves and say what was found."""
    parser = Parser(
        "import",
        "Read the result files that other projects publish and write them as tidy tables, one per\n"
        "method, with source, commit and licence of each in peers.json. `--peers` of compare,\n"
        "figures, report and claims then sets them beside our runs, and `diagnostics.load` reads\n"
        "them. docs/peers.md lists the supported repositories and how to get them. The tables\n"
        "belong to their authors: if you pass them on, keep their licences with them.",
    )
    parser.add_argument(
        "--from",
        dest="checkouts",
        type=pathname,
        nargs="+",
        required=True,
        metavar="DIR",
        help="checkouts of the official repositories, or folders of tidy tables",
    )
    parser.add_argument(
        "--out", type=pathname, default=Path("peers"), help="folder for the tables [peers]"
    )
    options = parser.parse(argv)
    # Imported here: pandas takes a second, and mistakes in flags should be reported before.
    from diagnostics.peers.importing import import_peers

    try:
        done = import_peers(options.checkouts, options.out)
    except OSError as error:
        raise AnalysisError(f"cannot write to {options.out}: {error}") from None
    for name, rows in done.tables.items():
        runs = rows.groupby(["task", "seed"]).ngroups
        _say(f"{name}: {rows['task'].nunique()} tasks, {runs} runs, {len(rows):,} evaluations")
    for note in done.notes:
        _say(note)
    _say(f"{len(done.tables)} methods in {options.out}; sources and licences in peers.json")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(plain(line) + "\n")
