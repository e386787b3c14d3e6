"""How signs of primacy bias look in agents of known dose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from diagnostics.plots.card import Plot
from diagnostics.plots.style import styled

_GROUPS = {
    "unprimed": ("#2e7d4f", "o"),
    "low dose": ("#8fb8d8", "o"),
    "primed": ("#b3262c", "o"),
    "reset": ("#2e7d4f", "x"),
    "protected": ("#8a8f96", "s"),
    "treated": ("#c98a00", "^"),
}
"""Colour and marker: green is healthy, red is biased."""


def dose_response(
    values: pd.DataFrame, signs: Mapping[str, str], thresholds: Mapping[str, float], *, title: str
) -> Plot:
    """One panel per sign: its value in every run against the dose; outliers lie on the edge.

    Args:
        values: rows of the calibration table of one task.
        signs: names of the columns, and what to call them.
        thresholds: of the signs that a verdict uses.
        title: of the figure.
    """
    columns = 4
    rows = -(-len(signs) // columns)
    with styled():
        figure = Figure(figsize=(11, 2.3 * rows + 0.9), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        doses = sorted(set(values["dose"]))
        place = {dose: at for at, dose in enumerate(doses)}
        rng = np.random.default_rng(0)
        for axis, (name, label) in zip(axes, signs.items(), strict=False):
            low, high = _limits(values[name], thresholds.get(name))
            for group, (colour, marker) in _GROUPS.items():
                own = values[(values["group"] == group) & values[name].notna()]
                shift = 0.12 * rng.uniform(-1, 1, len(own)) + _OFFSETS[group]
                x, y = own["dose"].map(place) + shift, own[name].clip(low, high)
                axis.scatter(x, y, 14, colour, marker, linewidths=0.9, alpha=0.85, label=group)
            if name in thresholds:
                axis.axhline(thresholds[name], color="0.25", linewidth=0.9, linestyle="--")
            axis.set_title(label, fontsize=9, fontweight="bold" if name in thresholds else "normal")
            axis.set_xticks(range(len(doses)), [_dose(dose) for dose in doses])
            axis.margins(y=0.08)
            axis.set_xlim(-0.5, len(doses) - 0.5)
        for axis in axes[len(signs) :]:
            axis.set_visible(False)
        for axis in axes[max(0, len(signs) - columns) : len(signs)]:
            axis.set_xlabel("priming updates")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(_GROUPS))
        figure.suptitle(title)
    return figure, values


def areas(table: pd.DataFrame, used: Sequence[str], *, usable: float, title: str) -> Plot:
    """The area under the ROC curve of every sign, by comparison.

    Args:
        table: columns `sign`, `task`, `estimate`, `low`, `high`, one row per sign and task.
        used: signs that a verdict uses, in bold.
        usable: where the lower end must lie for that.
        title: of the figure.
    """
    signs = list(dict.fromkeys(table["sign"]))[::-1]
    tasks = list(dict.fromkeys(table["task"]))
    with styled():
        figure = Figure(figsize=(7.5, 0.34 * len(signs) + 1.6), layout="constrained")
        axis = figure.subplots()
        for at, task in enumerate(tasks):
            rows = table[table["task"] == task].set_index("sign").reindex(signs)
            y = np.arange(len(signs)) + 0.16 * ((len(tasks) - 1) / 2 - at)
            ends = [rows["estimate"] - rows["low"], rows["high"] - rows["estimate"]]
            axis.errorbar(
                rows["estimate"], y, xerr=np.clip(ends, 0, None), fmt="os"[at % 2], markersize=4.5,
                linewidth=1.2, label=task,
            )  # fmt: skip
        axis.axvline(0.5, color="0.6", linewidth=0.9)
        axis.axvline(usable, color="0.25", linewidth=0.9, linestyle="--")
        axis.set_yticks(range(len(signs)), signs)
        for label in axis.get_yticklabels():
            label.set_fontweight("bold" if label.get_text() in used else "normal")
        axis.set_xlim(-0.03, 1.03)
        axis.set_xlabel("area under the ROC curve, primed against unprimed (0.5 is chance)")
        figure.legend(loc="outside lower center", ncols=len(tasks))
        axis.set_title(title)
    return figure, table


_OFFSETS = {
    "unprimed": 0.0,
    "low dose": 0.0,
    "primed": -0.2,
    "reset": 0.05,
    "protected": 0.2,
    "treated": 0.32,
}


def _dose(dose: int) -> str:
    return "0" if dose == 0 else f"{dose / 1000:g}k"


def _limits(values: pd.Series, threshold: float | None) -> tuple[float, float]:
    """Where the axis ends: outliers, drawn at its edge, must not flatten the others."""
    known = values.dropna()
    if known.empty:
        return 0.0, 1.0
    low, middle, high = known.quantile([0.05, 0.5, 0.95])
    reach = 1.5 * max(high - middle, middle - low)
    ends = [max(known.min(), middle - reach), min(known.max(), middle + reach)]
    return min(*ends, threshold or ends[0]), max(*ends, threshold or ends[1])
