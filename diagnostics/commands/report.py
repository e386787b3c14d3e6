"""`fog report`: show all runs on one self-contained HTML page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from diagnostics.commands.loading import add_grid, add_peers, loaded
from diagnostics.commands.replacing import replaceable
from diagnostics.errors import AnalysisError
from fog.cli.parser import Parser, pathname, target


def command(argv: Sequence[str]) -> int:
    """Write the page and say where it is."""
    parser = Parser(
        "report",
        "Write one HTML page that shows all runs side by side: a sortable table, learning curves,\n"
        "critic-loss heatmaps on a common scale, links to the runs and to executed notebooks.\n"
        "It works from a file and needs no network.",
    )
    parser.add_argument(
        "--runs", type=pathname, nargs="+", default=[Path("runs")], help="folders of runs [runs]"
    )
    parser.add_argument(
        "--out", type=target, default=Path("report.html"), help="file to write [report.html]"
    )
    parser.add_argument(
        "--notebooks",
        type=pathname,
        metavar="DIR",
        help="folder of notebooks executed by `fog figures` [figures, if it exists]",
    )
    add_grid(parser)
    add_peers(parser)
    options = parser.parse(argv)
    if options.out.is_dir():
        raise AnalysisError(f"{options.out} is a folder: give a file, such as --out report.html")
    replaceable(options.out, "<title>FoG Diagnostics: ", "an earlier report")
    if options.notebooks is not None and not options.notebooks.is_dir():
        raise AnalysisError(f"no folder {options.notebooks}: run `fog figures` first")
    # Imported here: pandas and matplotlib take seconds, and mistakes should be reported before.
    from diagnostics.report.html import write

    source = ", ".join(map(str, options.runs))
    # The page has a section on problems.
    with loaded(options.runs, options.grid, options.peers, few=True) as runs:
        page = write(
            runs,
            options.out,
            source=source,
            notebooks=options.notebooks or Path("figures"),
        )
    size = page.stat().st_size / 2**20
    sys.stdout.write(f"Wrote {page} ({size:.1f} MiB). Open it in a browser.\n")
    return 0
