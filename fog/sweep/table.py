"""The live table of a sweep, drawn with rich. It never grows beyond the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from fog.sweep.entry import Entry, State, Tally
from fog.sweep.view import ORDER, duration, number, overall
from fog.system.text import plain

_COLOURS: dict[State, str] = {
    "running": "green",
    "failed": "bold red",
    "queued": "cyan",
    "busy": "yellow",
    "interrupted": "yellow",
    "diverged": "magenta",
    "waiting": "dim",
    "finished": "dim green",
}
_FRAME = 4
"""Lines that are not runs: header, omitted runs, total, cursor."""


class Table:
    """One row for each run that fits, running ones first, and a line for the total.

    Drawn only on request, from the sweep's own loop: a drawing thread would be alive while
    processes are forked.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def changed(self, entry: Entry) -> None:
        """Keep failures and retries above the table, where they stay."""
        if entry.reason:
            verb = "starts again" if entry.state == "waiting" else entry.state
            self.say(f"{entry.job.label} {verb}: {entry.reason}")

    def tick(self, tally: Tally) -> None:
        """Redraw the table."""
        self._live.update(draw(tally, *self._console.size), refresh=True)

    def say(self, line: str) -> None:
        """Print above the table."""
        self._console.print(Text(plain(line)))

    def close(self) -> None:
        """Take the table away; the summary follows."""
        self._live.stop()


def draw(tally: Tally, width: int, height: int) -> Group:
    """The current table, cut to a terminal of that size."""
    ranked = sorted(tally.entries, key=lambda entry: ORDER.index(entry.state))
    shown = ranked[: max(1, height - _FRAME)]
    left_out = ranked[len(shown) :]
    parts: list[RenderableType] = [_grid(shown, width)]
    if left_out:
        parts.append(Text(f"... and {_summary(left_out)}", style="dim"))
    line = Text(overall(tally), style="bold", no_wrap=True, overflow="ellipsis")
    return Group(*parts, line)


def _grid(entries: Sequence[Entry], width: int) -> Grid:
    # The bar is the first to go on a narrow terminal, long task names the second.
    bar = min(24, width - 90) if width >= 100 else 0
    gap = 2 if width >= 100 else 1
    runs = [entry.job.config.run for entry in entries]
    variant = max(len("variant"), *(len(run.variant) for run in runs))
    fixed = {"variant": variant, "seed": 4, "status": len("interrupted")}
    numbers = {"done": 4, "steps/s": 7, "return": 7, "left": 7}
    taken = sum((*fixed.values(), *numbers.values(), bar))
    room = width - taken - gap * (len(fixed) + len(numbers) + (bar > 0))
    task = max(len("task"), *(len(run.task) for run in runs))
    grid = Grid(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="underline")
    grid.add_column("task", width=max(8, min(room, task)), no_wrap=True, overflow="ellipsis")
    for name, size in fixed.items():
        right: JustifyMethod = "right" if name == "seed" else "left"
        grid.add_column(name, width=size, no_wrap=True, justify=right)
    if bar:
        grid.add_column("", width=bar)
    for name, size in numbers.items():
        grid.add_column(name, width=size, no_wrap=True, justify="right")
    for entry in entries:
        grid.add_row(*_row(entry, bar))
    return grid


def _row(entry: Entry, bar: int) -> list[RenderableType]:
    run, made = entry.job.config.run, entry.progress
    running, begun = entry.state == "running", entry.share > 0
    cells: list[RenderableType] = [Text(run.task), Text(run.variant), str(run.seed)]
    cells.append(Text(entry.state, style=_COLOURS[entry.state]))
    if bar:
        cells.append(ProgressBar(total=1.0, completed=entry.share, width=bar) if begun else "")
    return [
        *cells,
        f"{entry.share:.0%}" if begun or running else "",
        number(made.steps_per_second) if running else "",
        "" if made.last_return is None else number(made.last_return),
        duration(entry.seconds_left) if running else "",
    ]


def _summary(entries: Sequence[Entry]) -> str:
    counts = Tally(entries).counts()
    return ", ".join(f"{counts[state]} {state}" for state in ORDER if counts[state])
