"""Small multiples of curves: a panel for each variant, where one panel would merge them all."""

from __future__ import annotations

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from diagnostics.paper import names
from diagnostics.plots.curves import MANY, band_text, curves, draw_line
from diagnostics.plots.layout import (
    band_limits,
    crown,
    cut_text,
    mark_events,
    panels,
    small_print,
    step_axis,
)
from diagnostics.plots.lines import Line, lines
from diagnostics.plots.style import styled

Plot = tuple[Figure, pd.DataFrame]

_FEW = 2
"""Curves whose bands can be told apart in one panel."""


def separated(
    table: pd.DataFrame,
    events: pd.DataFrame,
    *,
    reference: str,
    ylabel: str = "evaluation return",
    title: str = "",
) -> Plot:
    """Each label beside one reference: a row of panels for each task, one panel per label.

    Two bands in a panel can be told apart, five cannot. Where there is no reference, or no more
    than two labels, all curves of a task share a panel.

    Args:
        table: What `diagnostics.metrics.curves.mean_curves` returned.
        events: `Runs.events` of the same runs; each panel marks the resets of its own label.
        reference: The label, or its variant, that is in every panel.
        ylabel: Quantity and unit of the y axis.
        title: Headline.
    """
    labels = names.ordered(table["label"])
    found = [label for label in labels if names.variant_of(label) == reference]
    others = [label for label in labels if label not in found[:1]]
    if not found or len(labels) <= _FEW or len(others) > MANY:
        return curves(table, events, ylabel=ylabel, title=title)
    tasks = list(dict.fromkeys(table["task"]))
    columns = len(others) if len(tasks) > 1 or len(others) < 4 else 2
    looks = {label: Line(look.label, look.colour, "-") for label, look in lines(labels).items()}
    handles: dict[str, Artist] = {
        label: Line2D([], [], color=look.colour, label=look.label) for label, look in looks.items()
    }
    cut = ""
    with styled():
        figure, axes = panels(
            len(tasks) * len(others), columns=columns, width=3.5, height=2.5, sharey="row"
        )
        places = [(task, label) for task in tasks for label in others]
        for k, (panel, (task, label)) in enumerate(zip(axes, places, strict=True)):
            rows = table[table["task"] == task]
            for name in (found[0], label):
                draw_line(panel, rows[rows["label"] == name], looks[name])
            own = events[(events["task"] == task) & (events["label"] == label)]
            for handle in mark_events(panel, own, expansions=False):
                handles.setdefault(str(handle.get_label()), handle)
            heading = looks[label].label if len(tasks) == 1 else f"{task}\n{looks[label].label}"
            panel.set_title(heading, fontsize=10)
            panel.set_ylim(band_limits(rows))
            cut = cut_text(rows) or cut
            panel.set_xlim(0, rows["env_step"].max() * 1.02)
            _outer(panel, k, columns, len(places), ylabel)
        where = f", {tasks[0]}" if title and len(tasks) == 1 else ""
        crown(figure, title + where, list(handles.values()))
        small_print(
            figure,
            f"Every panel shows {looks[found[0]].label} and one other variant, whose resets are "
            f"marked. {band_text(table['seeds'].tolist())}{cut}",
        )
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
            draw_line(panel, table[table["label"] == label], solid)
            panel.set_title(solid.label, fontsize=10)
            panel.set_xlim(0, table["env_step"].max() * 1.02)
            _outer(panel, k, columns, len(labels), ylabel)
        axes[0].set_ylim(band_limits(table))
        crown(figure, title)
        small_print(
            figure,
            f"{', '.join(dict.fromkeys(table['task']))}. {band_text(table['seeds'].tolist())}"
            f"{cut_text(table)} Grey: the other variants. Dashed: resets.",
        )
    return figure, table


def _outer(panel: Axes, place: int, columns: int, count: int, ylabel: str) -> None:
    """Label the axes at the left and at the bottom; above an empty cell is at the bottom too."""
    last = place + columns >= count
    step_axis(panel, "environment step" if last else "")
    panel.tick_params(labelbottom=last)
    if place % columns == 0:
        panel.set_ylabel(ylabel)
