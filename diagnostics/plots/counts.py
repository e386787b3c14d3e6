"""Sample counts that real runs recorded, over the exact expectation of their sampler."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from diagnostics.paper import names
from diagnostics.plots.layout import (
    crown,
    log_axis,
    panel_title,
    panels,
    seeds_text,
    small_print,
    step_label,
)
from diagnostics.plots.style import COLOURS, styled

Plot = tuple[Figure, pd.DataFrame]

OBSERVED: dict[str, Any] = {
    "ls": "", "marker": "o", "ms": 3.2, "mew": 0, "color": COLOURS["blue"]
}  # fmt: skip
_PRIMED = 20
"""Times the median from which on a linear axis would hide all but the first bins."""

EXPECTED: dict[str, Any] = {"color": "#BBBBBB", "lw": 5, "solid_capstyle": "round"}


def observed_counts(table: pd.DataFrame, *, title: str) -> Plot:
    """Draws per transition against order of arrival: dots observed, a pale line expected.

    Args:
        table: One row per label and bin: `label`, `transition` (centre of the bin), `observed`,
            `expected` (NaN if the sampler has no law), `seeds`; counts in units of beta.
        title: Headline.
    """
    labels = names.ordered(table["label"])
    columns = 2 if len(labels) in (2, 4) else 3
    with styled():
        figure, axes = panels(
            len(labels), columns=columns, width=3.9, height=2.7, sharex=True, sharey=True
        )
        for k, (panel, label) in enumerate(zip(axes, labels, strict=True)):
            rows = table[table["label"] == label].sort_values("transition")
            # Wide and pale under the dots: where both agree, both are seen.
            panel.plot(rows["transition"], rows["expected"], zorder=2, **EXPECTED)
            panel.plot(rows["transition"], rows["observed"], zorder=3, **OBSERVED)
            heading = f"{names.label(label)} ({seeds_text([int(rows['seeds'].max())])})"
            panel.set_title(panel_title(heading), fontsize=10)
            panel.xaxis.set_major_formatter(step_label)
            # A panel above an empty cell is the last of its column.
            last = k + columns >= len(labels)
            panel.tick_params(labelbottom=last)
            panel.set_xlabel("transition, in order of arrival" if last else "")
            if k % columns == 0:
                panel.set_ylabel("draws per transition,\nin units of $\\beta$")
        # Last, because the panels share them and it ends the search for limits.
        if table["observed"].max() > _PRIMED * table["observed"].median():
            log_axis(axes[0])
        else:
            axes[0].set_ylim(bottom=0)
        axes[0].set_xlim(left=0)
        handles = [
            Line2D([], [], label="observed", **OBSERVED),
            Line2D([], [], label="exact expectation", **EXPECTED),
        ]
        crown(figure, title, handles)
        small_print(
            figure,
            r"Mean over seeds at the end of training; $\beta$ = replay ratio x batch size. "
            "Prioritised replay has no law of its own: no line.",
        )
    return figure, table
