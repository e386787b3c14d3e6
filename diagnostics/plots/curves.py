"""Curves over training: mean over seeds, 95 % interval, resets and expansions marked."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from diagnostics.paper import names
from diagnostics.plots.layout import (
    band_limits,
    crown,
    cut_text,
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
"""Lines that one panel can hold, bands and all."""

FEW = 3
"""Bands that can be told apart where the intervals are also drawn elsewhere."""

_BAND = "Lines: mean over {seeds}. Shaded: 95 % Student interval over seeds{single}."


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
    cut = ""
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
                draw_line(panel, rows[rows["label"] == label], looks[label])
            if events is not None:
                own = events[events["task"] == task]
                for handle in mark_events(panel, own, expansions=expansions):
                    handles.setdefault(str(handle.get_label()), handle)
            panel.set_title(task, fontsize=10)
            panel.set_xlim(left=0)
            if least_top is None:
                panel.set_ylim(band_limits(rows, log=log))
                cut = cut_text(rows, log=log) or cut
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
        small_print(figure, band_text(table["seeds"].tolist()) + cut + remark)
    return figure, table


def band_text(seeds: Sequence[int]) -> str:
    """Small print for lines with bands; says so where a single seed has no band."""
    single = "; none where there is one seed" if seeds and min(seeds) < 2 else ""
    return _BAND.format(seeds=seeds_text(seeds), single=single)


def draw_line(axes: Axes, rows: pd.DataFrame, look: Line, *, band: bool = True) -> None:
    """One curve: the mean and, if it is known, the interval around it."""
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
    many, few = len(looks) > MANY, len(looks) <= FEW
    handles = [
        Line2D([], [], color=look.colour, ls=look.stroke, label=look.label)
        for look in looks.values()
    ]
    with styled():
        height = max(4.0, 1.5 + 0.3 * len(overall))
        figure, (left, right) = panels(2, columns=2, width=4.8, height=height)
        for label, look in looks.items():
            draw_line(left, table[table["label"] == label], look, band=few)
        handles += mark_events(left, events, expansions=False)
        left.set_xlim(left=0)
        left.axhline(0, color=COLOURS["black"], lw=0.8)
        left.set_ylim(band_limits(table, also=0.0))
        step_axis(left, "measured at env step")
        left.set_ylabel("primacy-bias index\n(ln newest / older loss, scale-free)")
        left.set_title("Over training", fontsize=10)
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
        crown(figure, title, handles)
        small_print(
            figure,
            "Above 0: the newest data is fitted worse than old data, the picture the paper calls "
            "primacy bias. "
            + (
                band_text(table["seeds"].tolist())
                if few
                else "No bands on the left, where they would merge: intervals are on the right."
            ),
        )
    return figure, table
