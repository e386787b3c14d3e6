"""Scores: bars by suite, and score against what it cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from diagnostics.paper import names
from diagnostics.plots.layout import crown, panels, seeds_text, small_print, step_label
from diagnostics.plots.lines import lines
from diagnostics.plots.style import COLOURS, styled

Plot = tuple[Figure, pd.DataFrame]

_PAPER_SHADES = ("#4D4D4D", "#8C8C8C", "#B5B5B5", "#D6D6D6")


def score_bars(table: pd.DataFrame, *, title: str, ylabel: str) -> Plot:
    """Grouped bars with intervals: one group per suite, one bar per method.

    Args:
        table: Columns `group`, `method`, `source` ("run" or "paper"), `score`, `low`, `high`,
            `tasks`, `seeds`, in drawing order. Missing cells are left empty and marked.
        title: Headline.
        ylabel: What a score is.
    """
    groups = list(dict.fromkeys(table["group"]))
    methods = list(dict.fromkeys(zip(table["method"], table["source"], strict=True)))
    looks = lines([name for name, source in methods if source == "run"])
    paper = [name for name, source in methods if source == "paper"]
    width = 0.84 / len(methods)
    handles = []
    with styled():
        figure, (axes,) = panels(1, width=max(6.4, 1.6 * len(groups) + 1.5), height=4.4)
        for place, (method, source) in enumerate(methods):
            rows = table[(table["method"] == method) & (table["source"] == source)]
            rows = rows.set_index("group").reindex(groups)
            x = np.arange(len(groups)) + (place - (len(methods) - 1) / 2) * width
            shade = _PAPER_SHADES[paper.index(method) % 4] if source == "paper" else ""
            colour = shade or looks[method].colour
            text = f"{method} (paper)" if source == "paper" else looks[method].label
            hatch = "" if source == "paper" or looks[method].stroke == "-" else "///"
            axes.bar(x, rows["score"], width * 0.9, color=colour, hatch=hatch, ec="white", lw=0.4)
            low = (rows["score"] - rows["low"]).clip(lower=0)
            high = (rows["high"] - rows["score"]).clip(lower=0)
            axes.errorbar(x, rows["score"], [low, high], fmt="none", ecolor="#222222", lw=1.0)
            for position in x[rows["score"].isna().to_numpy()]:
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
            handles.append(Patch(fc=colour, hatch=hatch, ec="white", label=text))
        axes.set_xticks(np.arange(len(groups)), groups)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(ylabel)
        axes.axhline(0, color=COLOURS["black"], lw=0.8)
        axes.margins(y=0.06)
        crown(figure, title, handles, columns=4)
        own = table[(table["source"] == "run") & table["score"].notna()]
        seeds = own["seeds"].astype(int).tolist()
        small_print(
            figure,
            f"This project's runs: {seeds_text(seeds)} per task, 95 % Student interval "
            "where there are several."
            + (" Paper: recomputed from its printed means, 3 seeds." if paper else ""),
        )
    return figure, table


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
            for row in table.itertuples():
                look, cost = looks[row.label], getattr(row, column)
                marker = {"-": "o", "--": "s", ":": "^", "-.": "D"}[look.stroke]
                if row.seeds > 1:
                    panel.plot([cost, cost], [row.low, row.high], color=look.colour, lw=1.6)
                handles[row.label] = panel.plot(
                    cost, row.score, marker, ls="", ms=8, color=look.colour, label=look.label
                )[0]
            panel.set_xlabel(text)
            panel.xaxis.set_major_formatter(step_label)
            panel.margins(x=0.12)
            if k == 0:
                panel.set_ylabel(ylabel)
        crown(figure, title, [handles[label] for label in looks], columns=5)
        small_print(
            figure,
            f"Mean over {seeds_text(table['seeds'].astype(int).tolist())}; bars: 95 % Student "
            "interval over seeds where there are several.",
        )
    return figure, table
