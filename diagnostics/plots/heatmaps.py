"""Critic-loss heatmaps as in the paper: oldest data at the top, one colour scale for all panels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FixedLocator, NullLocator

from diagnostics.metrics.loss_grid import QUANTITIES, LossGrid
from diagnostics.paper import names
from diagnostics.plots.layout import (
    EXPANSION_COLOUR,
    crown,
    event_steps,
    mark_events,
    panel_title,
    panels,
    seeds_text,
    small_print,
    step_axis,
    step_label,
)
from diagnostics.plots.style import styled

Plot = tuple[Figure, pd.DataFrame]

# Dark is a small loss, as in the paper; the map keeps its order in grey and for colour-blind eyes.
LOSS_MAP = "viridis"
RATIO_MAP = "PuOr_r"


def loss_heatmaps(
    grids: Mapping[str, LossGrid],
    events: pd.DataFrame,
    *,
    quantity: str = "mean",
    title: str = "",
    columns: int = 3,
) -> Plot:
    """One heatmap per label on a shared logarithmic colour scale.

    Args:
        grids: What `diagnostics.metrics.loss_grid.loss_grids` returned.
        events: `Runs.events` of the same runs: resets and expansions are marked.
        quantity: Which column the grids hold, for the colour bar.
        title: Headline over the panels.
        columns: Panels per row.
    """
    norm = shared_norm(grids.values())
    handles: dict[str, Artist] = {}
    with styled():
        figure, axes = panels(len(grids), columns=columns, width=3.7, height=3.25)
        for panel, (label, grid) in zip(axes, grids.items(), strict=True):
            own = events[events["label"] == label]
            _draw(panel, grid, LOSS_MAP, norm)
            for handle in _mark(panel, own):
                handles.setdefault(str(handle.get_label()), handle)
            heading = f"{names.label(label)} ({seeds_text([grid.seeds])})"
            panel.set_title(panel_title(heading), fontsize=10, pad=10)
        _label_outer(axes, columns)
        # As thick in a figure of many rows as in one of a single row.
        aspect = 18 * math.ceil(len(grids) / columns)
        bar = figure.colorbar(
            axes[0].collections[0], ax=axes, shrink=0.9, pad=0.02, aspect=aspect, extend="both"
        )
        bar.set_label(QUANTITIES[quantity])
        plain_ticks(bar)
        if any(_missing(grid).any() for grid in grids.values()):
            handles["missing"] = Patch(fc="white", ec="#999999", hatch="////", label="no data")
        crown(figure, title, list(handles.values()))
        small_print(
            figure,
            "Each column is one measurement of the whole buffer, made at its right edge. "
            "Geometric mean over seeds, logarithmic colours shared by all panels; dark is a small "
            "loss. White: not yet inserted.",
        )
    tables = [grid.table(quantity) for grid in grids.values()]
    return figure, pd.concat(tables, ignore_index=True)


def ratio_heatmap(grid: LossGrid, events: pd.DataFrame, *, title: str, bar: str) -> Plot:
    """One heatmap of log10 ratios around zero, from `diagnostics.metrics.loss_grid.log_ratio`."""
    finite = np.abs(grid.values[np.isfinite(grid.values)])
    limit = float(np.quantile(finite, 0.98)) if len(finite) else 1.0
    norm = Normalize(-max(limit, 1e-3), max(limit, 1e-3))
    with styled():
        figure, axes = panels(1, width=6.0, height=4.4)
        _draw(axes[0], grid, RATIO_MAP, norm)
        handles = _mark(axes[0], events)
        _label_outer(axes, 1)
        colours = figure.colorbar(axes[0].collections[0], ax=axes, shrink=0.9, extend="both")
        colours.set_label(bar)
        crown(figure, title, handles)
        small_print(figure, f"{seeds_text([grid.seeds])} at least; white: not yet inserted.")
    return figure, grid.table("log10_ratio")


def shared_norm(grids: Iterable[LossGrid]) -> LogNorm:
    """Limits that fit all grids: the central 98 % of the cells, so that one spike hides nothing."""
    cells = [grid.values[grid.values > 0] for grid in grids]
    pooled = np.concatenate(cells) if cells else np.empty(0)
    pooled = pooled[np.isfinite(pooled)]
    if not len(pooled):
        return LogNorm(0.1, 1.0)
    low, high = np.quantile(pooled, [0.01, 0.99])
    return LogNorm(float(low), float(high if high > low * 1.01 else low * 1.01))


_SUBDIVISIONS = (
    (1.0,),
    (1.0, 3.0),
    (1.0, 2.0, 5.0),
    (1.0, 1.5, 2.0, 3.0, 5.0, 7.0),
    (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0),
)


_MOST = 10
"""Ticks that a colour bar holds apart."""


def log_ticks(low: float, high: float, least: int = 5) -> list[float]:
    """Round numbers between two limits of a logarithmic scale, at least so many of them."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for subdivision in _SUBDIVISIONS:
        marks = [sub * 10.0**decade for decade in decades for sub in subdivision]
        inside = [mark for mark in marks if low <= mark <= high]
        if len(inside) >= least:
            # A diverged critic spans a dozen decades: not all of them have room.
            return inside[:: math.ceil(len(inside) / _MOST)]
    return [float(f"{mark:.3g}") for mark in np.geomspace(low, high, least)]


def plain_ticks(bar: Colorbar) -> None:
    """Readable numbers also where the scale spans less than a decade."""
    bar.ax.yaxis.set_major_locator(FixedLocator(log_ticks(*bar.mappable.get_clim())))
    bar.ax.yaxis.set_major_formatter(lambda value, _: tick_text(value))
    bar.ax.yaxis.set_minor_locator(NullLocator())


def tick_text(value: float) -> str:
    """A number for a colour bar; beyond a million as a power, which takes less room than zeros."""
    if value < 1e6:
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    power = math.floor(math.log10(value) + 1e-9)
    digit = f"{value / 10.0**power:.2g}"
    return f"$10^{{{power}}}$" if digit == "1" else rf"${digit}\times10^{{{power}}}$"


def _draw(axes: Axes, grid: LossGrid, colour_map: str, norm: Normalize) -> None:
    axes.grid(visible=False)
    axes.pcolormesh(
        grid.column_edges,
        grid.row_edges,
        np.ma.masked_invalid(grid.values),
        cmap=colour_map,
        norm=norm,
        rasterized=True,
    )
    x, y = grid.column_edges, grid.row_edges
    for row, column in zip(*np.nonzero(_missing(grid)), strict=True):
        corner = (x[column], y[row])
        size = (x[column + 1] - x[column], y[row + 1] - y[row])
        axes.add_patch(Rectangle(corner, *size, fc="white", ec="#999999", lw=0, hatch="////"))
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[-1], y[0])


def _missing(grid: LossGrid) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.asarray(grid.possible & np.isnan(grid.values))


def _mark(axes: Axes, events: pd.DataFrame) -> list[Line2D]:
    """Resets and priming as lines through the map; expansions as red marks on its upper edge."""
    handles = mark_events(axes, events, expansions=False, halo=True)
    low, high = axes.get_xlim()
    steps = [step for step in event_steps(events, "expansion") if low <= step <= high]
    if steps:
        handles.append(
            axes.plot(
                steps,
                np.full(len(steps), 1.0),
                "v",
                color=EXPANSION_COLOUR,
                ms=7,
                mec="white",
                mew=0.6,
                clip_on=False,
                zorder=5,
                transform=axes.get_xaxis_transform(),
                label="expansion",
            )[0]
        )
    return handles


def _label_outer(axes: Sequence[Axes], columns: int) -> None:
    for k, panel in enumerate(axes):
        step_axis(panel, "measured at env step" if k + columns >= len(axes) else "")
        panel.yaxis.set_major_formatter(step_label)
        if k % columns == 0:
            panel.set_ylabel("inserted at env step\n(oldest at the top)")
