"""What figures share: grids of panels, step axes, event marks, a line of small print."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter, MaxNLocator

from diagnostics.plots.style import COLOURS

RESET_COLOUR = "#555555"
EXPANSION_COLOUR = "#B2182B"


def panels(
    count: int, *, columns: int = 3, width: float = 3.6, height: float = 3.0, **kwargs: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels, row by row; cells left over hold nothing."""
    columns = max(1, min(count, columns))
    rows = max(1, math.ceil(count / columns))
    # One small panel alone would have no room for its title and the small print.
    size = (max(width * columns, 6.4), max(height * rows, 3.6))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **kwargs)
    axes = list(grid.flat)
    for spare in axes[count:]:
        spare.set_axis_off()
    return figure, axes[:count]


def small_print(figure: Figure, text: str) -> None:
    """A caption under the figure: what is averaged, over how many seeds."""
    lines = textwrap.wrap(text, round(figure.get_figwidth() * 17))
    figure.supxlabel("\n".join(lines), fontsize=8, color="#444444", x=0.01, ha="left")


def step_label(value: float, _: object = None) -> str:
    """Environment steps for an axis: 500, 3k, 1.5M."""
    for unit, suffix in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{suffix}"
    return f"{value:g}"


def step_axis(axes: Axes, text: str = "environment step") -> None:
    """Label an x axis of environment steps."""
    axes.set_xlabel(text)
    axes.xaxis.set_major_formatter(step_label)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))


def log_axis(axes: Axes) -> None:
    """Make the y axis logarithmic, with plain numbers also within one decade."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.5)))


def event_steps(events: pd.DataFrame, kind: str) -> list[float]:
    """Distinct steps of the events of one kind, in order."""
    if events.empty:
        return []
    return sorted({float(step) for step in events.loc[events["event"] == kind, "env_step"]})


def mark_events(
    axes: Axes, events: pd.DataFrame, *, expansions: bool = True, colour: str = RESET_COLOUR
) -> list[Line2D]:
    """Draw resets dashed, priming dotted, expansions solid and red; return their legend entries."""
    handles = []
    for kind, dashes in (("reset", (4, 3)), ("priming", (1, 1.5))):
        style: dict[str, Any] = {"color": colour, "lw": 0.8, "ls": (0, dashes)}
        steps = event_steps(events, kind)
        for step in steps:
            axes.axvline(step, zorder=1.5, **style)
        if steps:
            handles.append(Line2D([], [], label=kind, **style))
    if expansions and event_steps(events, "expansion"):
        for step in event_steps(events, "expansion"):
            axes.axvline(step, color=EXPANSION_COLOUR, lw=0.8, alpha=0.7, zorder=1.5)
        handles.append(Line2D([], [], color=EXPANSION_COLOUR, lw=0.8, label="expansion"))
    return handles


def crown(figure: Figure, title: str, handles: Sequence[Any] = (), *, columns: int = 4) -> None:
    """A title over all panels and one legend for them below it, clear of the data."""
    if not handles:
        figure.suptitle(title, x=0.01, ha="left", fontsize=12)
        return
    # The title of a legend is laid out with it; a separate one would lie on top of it.
    figure.legend(
        handles=list(handles),
        title=title or None,
        title_fontsize=12,
        alignment="left",
        loc="outside upper left",
        ncols=min(columns, len(handles)),
        columnspacing=1.4,
        handlelength=2.2,
        borderaxespad=0.2,
    )


def empty(axes: Axes, text: str) -> None:
    """Say in the panel why it shows nothing."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.text(
        0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=COLOURS["grey"]
    )


def seeds_text(counts: Sequence[int]) -> str:
    """'1 seed', '3 seeds' or '2 to 3 seeds'."""
    low, high = (min(counts), max(counts)) if len(counts) else (0, 0)
    span = str(high) if low == high else f"{low} to {high}"
    return f"{span} seed" if span == "1" else f"{span} seeds"
