"""Sample counts that real runs recorded, over the exact expectation of their sampler."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from diagnostics.paper import names
from diagnostics.plots.layout import crown, panels, seeds_text, small_print, step_label
from diagnostics.plots.lines import lines
from diagnostics.plots.style import COLOURS, styled

Plot = tuple[Figure, pd.DataFrame]


def observed_counts(table: pd.DataFrame, *, title: str) -> Plot:
    """Draws per transition against order of arrival: dots observed, black lines expected.

    Args:
        table: One row per label and bin: `label`, `transition` (centre of the bin), `observed`,
            `expected` (NaN if the sampler has no law), `seeds`; counts in units of beta.
        title: Headline.
    """
    labels = names.ordered(table["label"])
    looks = lines(labels)
    with styled():
        figure, axes = panels(len(labels), columns=3, width=3.6, height=2.9, sharey=True)
        for k, (panel, label) in enumerate(zip(axes, labels, strict=True)):
            rows = table[table["label"] == label].sort_values("transition")
            colour = looks[label].colour
            panel.plot(rows["transition"], rows["observed"], "o", ms=3, mew=0, color=colour)
            panel.plot(rows["transition"], rows["expected"], color=COLOURS["black"], lw=1.1)
            panel.set_title(
                f"{looks[label].label} ({seeds_text([int(rows['seeds'].max())])})", fontsize=10
            )
            panel.xaxis.set_major_formatter(step_label)
            if k % 3 == 0:
                panel.set_ylabel("draws per transition,\nin units of $\\beta$")
            if k + 3 >= len(labels):
                panel.set_xlabel("transition, in order of arrival")
        # Last, because the panels share it and it ends the search for limits.
        axes[0].set_ylim(bottom=0)
        handles = [
            Line2D([], [], ls="", marker="o", ms=4, color=COLOURS["grey"], label="observed"),
            Line2D([], [], color=COLOURS["black"], lw=1.1, label="exact expectation"),
        ]
        crown(figure, title, handles)
        small_print(
            figure,
            r"Mean over seeds at the end of training; $\beta$ = replay ratio x batch size. "
            "Prioritised replay has no law of its own: no line.",
        )
    return figure, table
