"""Scores: bars by suite, and score against what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import offset_copy

from diagnostics.paper import names
from diagnostics.plots.layout import crown, panels, seeds_text, small_print, step_label
from diagnostics.plots.lines import STROKES, Line, lines
from diagnostics.plots.style import COLOURS, styled

Plot = tuple[Figure, pd.DataFrame]

_PAPER_SHADES = ("#4D4D4D", "#8C8C8C", "#B5B5B5", "#D6D6D6")

# One for each stroke, because a mark has no stroke of its own.
_MARKERS = dict(zip(STROKES, "os^DvP", strict=True))


def score_bars(table: pd.DataFrame, *, title: str, ylabel: str, apart: str = "") -> Plot:
    """Grouped bars with intervals: one group per suite, one bar per method.

    Args:
        table: Columns `group`, `method`, `source` ("run" or "paper"), `score`, `low`, `high`,
            `tasks`, `seeds`, in drawing order. Missing cells are left empty and marked.
        title: Headline.
        ylabel: What a score is.
        apart: Heading of the runs if they are not as long as the paper's, which then have a panel
            of their own: a miniature is no rival of a full run.
    """
    groups = list(dict.fromkeys(table["group"]))
    methods = list(dict.fromkeys(zip(table["method"], table["source"], strict=True)))
    paper = [method for method in methods if method[1] == "paper"]
    runs = [method for method in methods if method[1] == "run"]
    looks = lines([name for name, _ in runs])
    parts = {"": methods}
    if apart:
        parts = {"paper\n(full length)": paper, apart: runs}
        parts = {heading: part for heading, part in parts.items() if part}
    handles = []
    with styled():
        # Side by side for one group; one above the other where names of groups need the width.
        beside = len(parts) > 1 and len(groups) == 1
        shares = {"width_ratios": [len(part) + 1 for part in parts.values()]} if beside else {}
        full = max(6.4, 1.6 * len(groups) + 1.5)
        figure, axes = panels(
            len(parts),
            columns=2 if beside else 1,
            width=full / 2 if beside else full,
            height=4.4 if beside or len(parts) == 1 else 2.9,
            sharey=True,
            **shares,
        )
        for panel, (heading, part) in zip(axes, parts.items(), strict=True):
            for place, (method, source) in enumerate(part):
                rows = table[(table["method"] == method) & (table["source"] == source)]
                x = (place - (len(part) - 1) / 2) * 0.84 / len(part)
                if source == "paper":
                    look = Line(f"{method} (paper)", _PAPER_SHADES[place % 4], "-")
                else:
                    look = looks[method]
                cells = rows.set_index("group").reindex(groups)
                handles.append(_bars(panel, cells, x, 0.756 / len(part), look))
            panel.set_title(heading, fontsize=10)
            panel.set_xticks(np.arange(len(groups)), groups)
            panel.set_xlim(-0.5, len(groups) - 0.5)
            panel.grid(visible=False, axis="x")
            panel.axhline(0, color=COLOURS["black"], lw=0.8)
            panel.margins(y=0.06)
        for panel in axes[:1] if beside else axes:
            panel.set_ylabel(ylabel)
        crown(figure, title, handles, columns=4)
        own = table[(table["source"] == "run") & table["score"].notna()]
        seeds = own["seeds"].astype(int).tolist()
        small_print(
            figure,
            f"This project's runs: {seeds_text(seeds)} per task, 95 % Student interval "
            "where there are several."
            + (" Paper: recomputed from its printed means, 3 seeds." if paper else "")
            + (" Scale: the share of the paper's training steps." if apart else ""),
        )
    return figure, table


def _bars(axes: Axes, cells: pd.DataFrame, x: float, width: float, look: Line) -> Patch:
    """The bars of one method; returns its entry of the legend."""
    at = np.arange(len(cells)) + x
    style: dict[str, Any] = {
        "fc": look.colour, "hatch": "" if look.stroke == "-" else "///", "ec": "white", "lw": 0.4
    }  # fmt: skip
    axes.bar(at, cells["score"], width, **style)
    low = (cells["score"] - cells["low"]).clip(lower=0)
    high = (cells["high"] - cells["score"]).clip(lower=0)
    axes.errorbar(at, cells["score"], [low, high], fmt="none", ecolor="#222222", lw=1.0)
    for position in at[cells["score"].isna().to_numpy()]:
        axes.text(
            position,
            0.01,
            "missing",
            transform=axes.get_xaxis_transform(),
            rotation=90,
            ha="center",
            va="bottom",
            fontsize=7,
            color=COLOURS["grey"],
        )
    return Patch(label=look.label, **style)


def score_against(
    table: pd.DataFrame, costs: Sequence[tuple[str, str]], *, title: str, ylabel: str
) -> Plot:
    """Score against one or more measures of cost, one dot per label.

    Args:
        table: One row per label: `label`, `score`, `low`, `high`, `seeds` and the cost columns.
        costs: Column and axis label of each measure.
        title: Headline.
        ylabel: What a score is.
    """
    looks = lines(names.ordered(table["label"]))
    handles = {}
    with styled():
        figure, axes = panels(len(costs), columns=len(costs), width=4.4, height=4.8, sharey=True)
        for k, (panel, (column, text)) in enumerate(zip(axes, costs, strict=True)):
            for row, shift in zip(table.itertuples(), _side_by_side(table[column]), strict=True):
                look, cost = looks[row.label], getattr(row, column)
                style: dict[str, Any] = {
                    "color": look.colour,
                    "transform": offset_copy(panel.transData, figure, x=shift, units="points"),
                }
                marker = _MARKERS[look.stroke]
                if row.seeds > 1:
                    panel.plot([cost, cost], [row.low, row.high], lw=1.6, **style)
                handles[row.label] = panel.plot(
                    cost, row.score, marker, ls="", ms=8, label=look.label, **style
                )[0]
            panel.set_xlabel(text)
            # From 0, so that a cost all share does not look like a wide range of costs.
            panel.set_xlim(0, 1.25 * float(table[column].max()))
            panel.xaxis.set_major_locator(MaxNLocator(nbins=5))
            panel.xaxis.set_major_formatter(step_label)
            if k == 0:
                panel.set_ylabel(ylabel)
        # A shifted mark is not in the data's coordinates and has no part in the search for limits.
        ends = table[["score", "low", "high"]]
        low, high = float(ends.min().min()), float(ends.max().max())
        room = 0.06 * max(high - low, 0.1 * abs(high), 1e-9)
        axes[0].set_ylim(low - room, high + room)
        crown(figure, title, [handles[label] for label in looks], columns=5)
        small_print(
            figure,
            f"Mean over {seeds_text(table['seeds'].astype(int).tolist())}; bars: 95 % Student "
            "interval over seeds where there are several. Marks of equal cost stand side by side.",
        )
    return figure, table


def _side_by_side(costs: pd.Series) -> list[float]:
    """Points by which to shift each mark, so that those of equal cost (to 1 %) do not overlap."""
    near = max(0.01 * float(costs.max()), 1e-12)
    place = (costs / near).round()
    order = place.groupby(place).cumcount()
    count = place.groupby(place).transform("size")
    return [float(shift) for shift in 8.0 * (order - (count - 1) / 2)]
