"""Learning curves as inline SVG that answers the pointer: what the page's template needs to know.

The plot is drawn in a box of 1000 x 1000 units that is stretched to whatever room there is; tick
labels are text of the page at percentages of that box. Lines and letters thus keep their size on
any screen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.ticker import MaxNLocator

from diagnostics.paper import names
from diagnostics.plots.curves import FEW
from diagnostics.plots.layout import band_limits, event_steps, step_label
from diagnostics.plots.lines import STROKES, lines

_DASHES = dict(zip(STROKES, ("", "7 4", "2 3", "8 3 2 3", "15 4", "8 3 2 3 2 3"), strict=True))
_BOX = 1000.0


@dataclass(frozen=True)
class Tick:
    """A label and its place on an axis, in per cent from the left or the bottom."""

    place: float
    text: str


@dataclass(frozen=True)
class Series:
    """One variant: its look, its paths in the box, and its numbers for the pointer."""

    name: str
    colour: str
    dashes: str
    line: str
    band: str
    rows: list[list[float | None]]
    """Step, mean, low and high of each evaluation; None where there is no interval."""


@dataclass(frozen=True)
class Chart:
    """Everything the template draws."""

    ylabel: str
    series: list[Series]
    resets: list[float]
    across: list[Tick]
    up: list[Tick]
    last: float
    """The step at the right edge."""
    bottom: float
    top: float
    few: bool
    """Few enough lines for all bands to be shown at once."""


def chart(table: pd.DataFrame, events: pd.DataFrame, *, ylabel: str) -> Chart:
    """The chart of one task.

    Args:
        table: What `diagnostics.metrics.curves.mean_curves` returned, of one task.
        events: `Runs.events` of that task: resets are marked.
        ylabel: Quantity of the y axis.
    """
    last = float(table["env_step"].max()) or 1.0
    bottom, top = band_limits(table)

    def x(step: float) -> float:
        return round(_BOX * step / last, 1)

    def y(value: float) -> float:
        return round(_BOX * (top - value) / (top - bottom), 1)

    looks = lines(names.ordered(table["label"]))
    series = []
    for label, look in looks.items():
        rows = table[table["label"] == label].sort_values("env_step")
        known = rows.dropna(subset=["low", "high"])
        upper = [(x(row.env_step), y(row.high)) for row in known.itertuples()]
        lower = [(x(row.env_step), y(row.low)) for row in known.itertuples()]
        series.append(
            Series(
                name=look.label,
                colour=look.colour,
                dashes=_DASHES[look.stroke],
                line=_path((x(row.env_step), y(row.mean)) for row in rows.itertuples()),
                band=_path([*upper, *reversed(lower)]),
                rows=[
                    [_plain(value) for value in row]
                    for row in rows[["env_step", "mean", "low", "high"]].to_numpy(float)
                ],
            )
        )
    return Chart(
        ylabel=ylabel,
        series=series,
        resets=[x(step) for step in event_steps(events, "reset") if step <= last],
        across=[Tick(x(step) / 10, step_label(step)) for step in _ticks(0.0, last, 5)],
        up=[Tick(100 - y(value) / 10, f"{value:,g}") for value in _ticks(bottom, top, 6)],
        last=last,
        bottom=bottom,
        top=top,
        few=len(series) <= FEW,
    )


def _path(points: Iterable[tuple[float, float]]) -> str:
    """An SVG path through the points; empty if there are none."""
    text = " ".join(f"{x:g},{y:g}" for x, y in points)
    # A lone evaluation is a path without length, which a round cap turns into a dot.
    return f"M{text} L{text.rsplit(' ', 1)[-1]}" if text else ""


def _ticks(low: float, high: float, count: int) -> list[float]:
    locator = MaxNLocator(nbins=count, steps=[1, 2, 2.5, 5, 10])
    return [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]


def _plain(value: Any) -> float | None:
    """A number that JSON can hold."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
