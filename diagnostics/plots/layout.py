"""What figures share: grids of panels, step axes, event marks, a line of small print."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
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


def panel_title(text: str, longest: int = 34) -> str:
    """A title that keeps to its panel: broken before its first remark, then between words."""
    if len(text) <= longest:
        return text
    name, mark, remarks = text.partition(" (")
    parts = [name, f"({remarks}"] if mark else [name]
    return "\n".join(textwrap.fill(part, longest) for part in parts)


def step_label(value: float, _: object = None) -> str:
    """Environment steps and other counts for an axis: 500, 3k, 1.5M, 4G."""
    for unit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{suffix}"
    return f"{value:g}"


def step_axis(axes: Axes, text: str = "environment step") -> None:
    """Label an x axis of environment steps."""
    axes.set_xlabel(text)
    axes.xaxis.set_major_formatter(step_label)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))


class _PlainLog(LogFormatter):
    """The choice of labels is matplotlib's, the numbers are plain: 0.2, not 2e-01."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Text of one tick; empty where labels would crowd."""
        return f"{x:g}" if super().__call__(x, pos) else ""


def log_axis(axes: Axes) -> None:
    """Make the y axis logarithmic, with plain numbers also within one decade."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(_PlainLog(minor_thresholds=(1, 0.5)))
    low, high = axes.get_ylim()
    if high < 2 * low:
        middle = math.sqrt(low * high)
        axes.set_ylim(middle / 2, middle * 2)


def calm_axis(axes: Axes, least: float = 0.1) -> None:
    """Widen a y axis that would blow up noise: a constant must look constant.

    Args:
        axes: With its data; the scale is linear.
        least: Span of the axis at least, as a share of its largest number.
    """
    low, high = axes.get_ylim()
    span = least * max(abs(low), abs(high)) or 1.0
    if high - low < span:
        middle = (low + high) / 2
        axes.set_ylim(middle - span / 2, middle + span / 2)


def band_limits(
    rows: pd.DataFrame, *, log: bool = False, also: float | None = None
) -> tuple[float, float]:
    """A y axis for means with bands: intervals of few seeds may be wider than all means together.

    Bands may take half of the means' span above and below; beyond it they are cut off.

    Args:
        rows: Columns `mean`, `low` and `high`.
        log: Whether the axis is logarithmic.
        also: A height that must be seen.
    """
    heights = rows[["mean", "low", "high"]].to_numpy(float)
    if log:
        heights = np.log10(np.where(heights > 0, heights, np.nan))
    means = np.append(heights[:, 0], [] if also is None else [also])
    if not np.isfinite(means).any():
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = float(np.nanmin(means)), float(np.nanmax(means))
    reach = 0.5 * max(high - low, 0.1 * max(abs(low), abs(high)), 1e-9)
    bottom = max(low - reach, float(np.nanmin(heights[:, :2], initial=low)))
    top = min(high + reach, float(np.nanmax(heights[:, ::2], initial=high)))
    room = 0.04 * max(top - bottom, reach)
    ends = bottom - room, top + room
    return (10 ** ends[0], 10 ** ends[1]) if log else ends


def cut_text(rows: pd.DataFrame, *, log: bool = False) -> str:
    """Says in the small print that `band_limits` cut bands off; empty if it did not."""
    bottom, top = band_limits(rows, log=log)
    cut = (rows["low"] < bottom).any() or (rows["high"] > top).any()
    return " Bands are cut off at the panel." if cut else ""


def event_steps(events: pd.DataFrame, kind: str) -> list[float]:
    """Distinct steps of the events of one kind, in order."""
    if events.empty:
        return []
    return sorted({float(step) for step in events.loc[events["event"] == kind, "env_step"]})


def mark_events(
    axes: Axes, events: pd.DataFrame, *, expansions: bool = True, halo: bool = False
) -> list[Line2D]:
    """Draw resets dashed, priming dotted, expansions solid and red; return their legend entries.

    Args:
        axes: Where to draw.
        events: Rows with `env_step` and `event`.
        expansions: Mark expansions too.
        halo: Give lines a white edge, which keeps them visible on a dark heatmap.
    """
    handles = []
    for kind, dashes in (("reset", (4, 3)), ("priming", (1, 1.5))):
        style: dict[str, Any] = {"color": RESET_COLOUR, "lw": 0.8, "ls": (0, dashes)}
        if halo:
            style |= {"lw": 1.1, "path_effects": [withStroke(linewidth=2.6, foreground="white")]}
        steps = event_steps(events, kind)
        for step in steps:
            axes.axvline(step, zorder=1.5, **style)
        if steps:
            handles.append(Line2D([], [], label=kind, **style))
    if expansions and event_steps(events, "expansion"):
        for step in event_steps(events, "expansion"):
            axes.axvline(step, color=EXPANSION_COLOUR, lw=0.8, alpha=0.7, zorder=1.5)
        handles.append(Line2D([], [], color=EXPANSION_COLOUR, lw=0.8, alpha=0.7, label="expansion"))
    return handles


_TITLE_SIZE = 12


def crown(figure: Figure, title: str, handles: Sequence[Any] = (), *, columns: int = 4) -> None:
    """A title over all panels and one legend for them below it, clear of the data.

    Both keep to the figure: a long title is wrapped, and a legend that is too wide gets fewer
    columns than asked for.
    """
    title = _wrapped(figure, title)
    if not handles:
        figure.suptitle(title, x=0.01, ha="left", fontsize=_TITLE_SIZE)
        return
    for count in range(min(columns, len(handles)), 0, -1):
        # The title of a legend is laid out with it; a separate one would lie on top of it.
        legend = figure.legend(
            handles=list(handles),
            title=title or None,
            title_fontsize=_TITLE_SIZE,
            alignment="left",
            loc="outside upper left",
            ncols=count,
            columnspacing=1.4,
            handlelength=2.2,
            borderaxespad=0.2,
        )
        if count == 1 or legend.get_window_extent().width <= 0.98 * figure.bbox.width:
            return
        legend.remove()


def _wrapped(figure: Figure, title: str) -> str:
    """The title in as many lines as the figure's width needs."""
    probe = figure.text(0, 0, title, fontsize=_TITLE_SIZE, parse_math=False)
    share = probe.get_window_extent().width / (0.97 * figure.bbox.width)
    probe.remove()
    return title if share <= 1 else textwrap.fill(title, max(20, int(len(title) / share) - 2))


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
