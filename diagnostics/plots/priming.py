"""What a known dose of primacy bias costs, and what each cure gives back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from diagnostics.metrics import student
from diagnostics.plots.card import Plot
from diagnostics.plots.layout import crown, panels, seeds_text, small_print
from diagnostics.plots.style import COLOURS, styled

_LOOKS = (("orange", "o"), ("blue", "s"))
"""Colour and marker of the families, in their order."""
_APART = 0.17
"""Of a family from the middle of its condition."""


def by_condition(
    table: pd.DataFrame,
    conditions: Mapping[str, Mapping[str, str]],
    *,
    title: str,
    ylabel: str,
    note: str,
    logarithmic: bool = False,
) -> Plot:
    """One panel per task: one number of each run, by family and condition.

    Args:
        table: columns `task`, `family`, `condition`, `seed`, `value`, one row per run.
        conditions: by heading, the conditions below it and what their ticks say, in the order in
            which they are drawn.
        title: of the figure.
        ylabel: what was measured, in a word or two.
        note: the same in a sentence.
        logarithmic: whether the axis is, and means are geometric.

    Returns:
        The figure, and the means with their 95 % intervals.
    """
    tasks = list(dict.fromkeys(table["task"]))
    families = list(dict.fromkeys(table["family"]))
    groups = [list(group) for group in conditions.values()]
    places = {name: k for k, name in enumerate(name for group in groups for name in group)}
    divides = [places[group[0]] - 0.5 for group in groups[1:]]
    labels = [text for group in conditions.values() for text in group.values()]
    means = _means(table, logarithmic)
    with styled():
        figure, axes = panels(len(tasks), columns=1, width=8.6, height=3.1)
        for axis, task in zip(axes, tasks, strict=True):
            for family, (colour, marker), shift in zip(
                families, _LOOKS, (-_APART, _APART), strict=False
            ):
                own = table[(table["task"] == task) & (table["family"] == family)]
                x = own["condition"].map(places) + shift
                axis.plot(
                    x - 0.09, own["value"], marker, ms=3.5, mew=0, alpha=0.45, color=COLOURS[colour]
                )
                _bars(axis, means, task, family, places, shift, colour, marker)
            if logarithmic:
                axis.set_yscale("log")
            else:
                axis.axhline(0, color="0.6", linewidth=0.8)
            for divide in divides:
                axis.axvline(divide, color="#BBBBBB", linewidth=0.8)
            axis.set_xlim(-0.6, max(places.values()) + 0.8)
            axis.set_xticks(list(places.values()), labels, fontsize=9)
            axis.grid(visible=False, axis="x")
            axis.set_ylabel(f"{task}\n{ylabel}")
            for heading, group in zip(conditions, groups, strict=True):
                axis.text(
                    float(np.mean([places[name] for name in group])), 1.01, heading, ha="center",
                    va="bottom", fontsize=9, color="0.3", transform=axis.get_xaxis_transform(),
                )  # fmt: skip
        handles = [
            Line2D([], [], color=COLOURS[colour], marker=marker, lw=1.6, ms=5, label=family)
            for family, (colour, marker) in zip(families, _LOOKS, strict=False)
        ]
        crown(figure, title, handles)
        counts = list(table.groupby(["task", "family", "condition"]).size())
        mean = "geometric mean" if logarithmic else "mean"
        bars = f"Bars: {mean} and 95 % Student interval" if max(counts) > 1 else "Large marks: mean"
        small_print(figure, f"{note} Small marks: one run each. {bars} over {seeds_text(counts)}.")
    return figure, means


def _bars(
    axis: Axes,
    means: pd.DataFrame,
    task: str,
    family: str,
    places: Mapping[str, int],
    shift: float,
    colour: str,
    marker: str,
) -> None:
    own = means[(means["task"] == task) & (means["family"] == family)]
    ends = [own["mean"] - own["low"], own["high"] - own["mean"]]
    axis.errorbar(
        own["condition"].map(places) + shift, own["mean"], yerr=ends, fmt=marker, ms=6, mew=0,
        elinewidth=1.8, capsize=3, color=COLOURS[colour],
    )  # fmt: skip


def _means(table: pd.DataFrame, logarithmic: bool) -> pd.DataFrame:
    rows = []
    for (task, family, condition), own in table.groupby(
        ["task", "family", "condition"], sort=False
    ):
        if logarithmic:
            found = student.Interval(*np.exp(student.mean(np.log(own["value"]))))
        else:
            found = student.mean(own["value"])
        rows.append((task, family, condition, *found, len(own)))
    columns = ["task", "family", "condition", "mean", "low", "high", "seeds"]
    return pd.DataFrame(rows, columns=columns)
