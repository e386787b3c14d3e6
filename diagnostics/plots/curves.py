"""Curves over training: mean over seeds, 95 % interval, resets and expansions marked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from diagnostics.paper import names
from diagnostics.plots.layout import (
    crown,
    log_axis,
    mark_events,
    panels,
    seeds_text,
    small_print,
    step_axis,
)
from diagnostics.plots.lines import Line, lines
from diagnostics.plots.style import COLOURS, styled

Plot = tuple[Figure, pd.DataFrame]

MANY = 6
"""Labels that one panel can hold, bands and all."""

_BAND = (
    "Lines: mean over {seeds}. Shaded: 95 % Student interval over seeds{single}, cut off at the "
    "panel."
)
_ROOM = 0.25
"""How far bands may stretch the y axis to either side, as a share of what the lines span."""


def curves(
    table: pd.DataFrame,
    events: pd.DataFrame | None = None,
    *,
    ylabel: str = "evaluation return",
    title: str = "",
    columns: int = 3,
    log: bool = False,
    least_top: float | None = None,
    expansions: bool = False,
    remark: str = "",
) -> Plot:
    """One panel per task, one line per label.

    Args:
        table: What `diagnostics.metrics.curves.mean_curves` returned.
        events: `Runs.events` of the same runs; None marks nothing.
        ylabel: Quantity and unit of the y axis.
        title: Headline over the panels.
        columns: Panels per row.
        log: Logarithmic y axis.
        least_top: For shares: start the y axis at 0 and let it reach at least this.
        expansions: Mark expansions too, not only resets.
        remark: Added to the small print.
    """
    tasks = list(dict.fromkeys(table["task"]))
    looks = lines(names.ordered(table["label"]))
    handles: dict[str, Artist] = {
        label: Line2D([], [], color=look.colour, ls=look.stroke, label=look.label)
        for label, look in looks.items()
    }
    with styled():
        single = len(tasks) == 1
        figure, axes = panels(
            len(tasks),
            columns=columns,
            width=6.4 if single else 3.7,
            height=4.2 if single else 2.9,
        )
        for k, (panel, task) in enumerate(zip(axes, tasks, strict=True)):
            rows = table[table["task"] == task]
            for label in names.ordered(rows["label"]):
                _line(panel, rows[rows["label"] == label], looks[label])
            if events is not None:
                own = events[events["task"] == task]
                for handle in mark_events(panel, own, expansions=expansions):
                    handles.setdefault(str(handle.get_label()), handle)
            panel.set_title(task, fontsize=10)
            panel.set_xlim(left=0)
            panel.set_ylim(_limits(rows, log=log))
            if log:
                log_axis(panel)
            if least_top is not None:
                top = max(least_top, panel.get_ylim()[1])
                # A little below 0, so that a line of zeros is seen above the axis.
                panel.set_ylim(-0.03 * top, top)
            step_axis(panel, "environment step" if k + columns >= len(tasks) else "")
            if k % columns == 0:
                panel.set_ylabel(ylabel)
        crown(figure, title, list(handles.values()), columns=3 if single else 4)
        small_print(figure, band_text(table["seeds"].tolist()) + remark)
    return figure, table


def highlighted(
    table: pd.DataFrame, events: pd.DataFrame, *, ylabel: str, title: str, columns: int = 4
) -> Plot:
    """One panel per label of one task, its curve in colour over the others in grey.

    For more labels than one panel can hold: every variant is seen, and against all others.
    """
    labels = names.ordered(table["label"])
    looks = lines(labels)
    with styled():
        figure, axes = panels(
            len(labels), columns=columns, width=2.9, height=2.4, sharex=True, sharey=True
        )
        for k, (panel, label) in enumerate(zip(axes, labels, strict=True)):
            for other in labels:
                rows = table[table["label"] == other]
                panel.plot(rows["env_step"], rows["mean"], color="#CFCFCF", lw=1.0)
            mark_events(panel, events[events["label"] == label], expansions=False)
            solid = Line(looks[label].label, looks[label].colour, "-")
            _line(panel, table[table["label"] == label], solid)
            panel.set_title(solid.label, fontsize=10)
            panel.set_xlim(left=0)
            step_axis(panel, "environment step" if k + columns >= len(labels) else "")
            panel.set_ylim(_limits(table))
            panel.tick_params(labelbottom=k + columns >= len(labels))
            if k % columns == 0:
                panel.set_ylabel(ylabel)
        crown(figure, title)
        small_print(
            figure,
            band_text(table["seeds"].tolist()) + " Grey: the other variants. Dashed: resets.",
        )
    return figure, table


def band_text(seeds: Sequence[int]) -> str:
    """Small print for lines with bands; says so where a single seed has no band."""
    single = "; none where there is one seed" if seeds and min(seeds) < 2 else ""
    return _BAND.format(seeds=seeds_text(seeds), single=single)


def _line(axes: Axes, rows: pd.DataFrame, look: Line, *, band: bool = True) -> None:
    # A lone evaluation has no line: it needs a dot to be seen.
    marker = "o" if len(rows) == 1 else ""
    axes.plot(
        rows["env_step"], rows["mean"], color=look.colour, ls=look.stroke, marker=marker, ms=4
    )
    known = rows.dropna(subset=["low", "high"])
    if band and len(known):
        axes.fill_between(
            known["env_step"], known["low"], known["high"], color=look.colour, alpha=0.18, lw=0
        )


def _limits(
    rows: pd.DataFrame, *, log: bool = False, also: float | None = None
) -> tuple[float, float]:
    """A y axis for lines and their bands; the band of three seeds can be wider than all lines.

    Args:
        rows: `mean_curves`.
        log: Whether the axis is logarithmic.
        also: A height that must be seen.
    """
    values = rows[["mean", "low", "high"]].to_numpy(float)
    if log:
        values = np.log10(np.where(values > 0, values, np.nan))
    lines, bands = values[:, 0], values[np.isfinite(values)]
    lines = np.append(lines[np.isfinite(lines)], [] if also is None else [also])
    if not len(lines):
        return (0.1, 1.0) if log else (0.0, 1.0)
    least, most = lines.min(), lines.max()
    room = _ROOM * (most - least) or np.inf
    least = min(least, max(bands.min(), least - room))
    most = max(most, min(bands.max(), most + room))
    margin = 0.05 * (most - least) or 0.5
    low, high = float(least - margin), float(most + margin)
    return (10**low, 10**high) if log else (low, high)


def index_curves(
    table: pd.DataFrame, overall: pd.DataFrame, events: pd.DataFrame, *, title: str
) -> Plot:
    """The primacy-bias index over training, and its mean over training with intervals.

    Args:
        table: `mean_curves` of the index.
        overall: One row per label: `label`, `index`, `low`, `high`, `seeds`, best first.
        events: Resets to mark.
        title: Headline.
    """
    looks = lines(names.ordered(table["label"]))
    many = len(looks) > MANY
    with styled():
        height = max(4.0, 1.5 + 0.3 * len(overall))
        figure, (left, right) = panels(2, columns=2, width=4.8, height=height)
        for label, look in looks.items():
            _line(left, table[table["label"] == label], look, band=not many)
        mark_events(left, events, expansions=False)
        left.set_xlim(left=0)
        left.axhline(0, color=COLOURS["black"], lw=0.8)
        left.set_ylim(_limits(table, also=0.0))
        step_axis(left, "measured at env step")
        left.set_ylabel("primacy-bias index\n(ln newest / older loss, scale-free)")
        left.set_title("Over training; dashed lines: resets", fontsize=10)
        for place, row in enumerate(overall.itertuples()):
            look = looks[row.label]
            if row.seeds > 1:
                right.plot([row.low, row.high], [place, place], color=look.colour, lw=2.5)
            right.plot(row.index_mean, place, "o", color=look.colour, ms=7)
        right.axvline(0, color=COLOURS["black"], lw=0.8)
        right.set_yticks(
            range(len(overall)),
            [
                f"{looks[row.label].label}{' ' if many else chr(10)}({seeds_text([row.seeds])})"
                for row in overall.itertuples()
            ],
        )
        right.set_ylim(len(overall) - 0.5, -0.5)
        right.set_xlabel("mean index over training")
        right.xaxis.set_major_locator(MaxNLocator(nbins=5))
        right.set_title("Ranked, 95 % Student interval", fontsize=10)
        crown(figure, title)
        small_print(
            figure,
            "Above 0: the newest data is fitted worse than old data, the picture the paper calls "
            "primacy bias. "
            + ("No bands: too many lines." if many else band_text(table["seeds"].tolist())),
        )
    return figure, table
