"""How signs of primacy bias look in agents of known dose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from diagnostics.plots.card import Plot
from diagnostics.plots.layout import crown, panels, small_print, step_label
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

_TOLD = {
    "low dose": "too few priming updates to harm",
    "reset": "resets after priming",
    "protected": "LayerNorm",
    "treated": "ER decay or growing, no LayerNorm",
}
_GAP = 0.6
"""Between two doses, in widths of a group."""


def dose_response(
    values: pd.DataFrame, signs: Mapping[str, str], thresholds: Mapping[str, float], *, title: str
) -> Plot:
    """One panel per sign: its value in every run against the dose; outliers lie on the edge.

    Signs that no run recorded get no panel; the small print names them.

    Args:
        values: rows of the calibration table of one task.
        signs: names of the columns, and what to call them.
        thresholds: of the signs that a verdict uses.
        title: of the figure.
    """
    columns = 4
    absent = [label for name, label in signs.items() if values[name].isna().all()]
    signs = {name: label for name, label in signs.items() if label not in absent} or signs
    groups = [group for group in _GROUPS if (values["group"] == group).any()]
    places, ticks = _places(values, groups)
    firsts = [min(at for (of, _), at in places.items() if of == dose) for dose in ticks]
    edges = [first - _GAP / 2 - 0.5 for first in firsts[1:]]
    rng = np.random.default_rng(0)
    with styled():
        figure, axes = panels(len(signs), columns=columns, width=3.0, height=2.3)
        for k, (axis, (name, label)) in enumerate(zip(axes, signs.items(), strict=True)):
            low, high = _limits(values[name], thresholds.get(name))
            for group in groups:
                colour, marker = _GROUPS[group]
                own = values[(values["group"] == group) & values[name].notna()]
                x = [places[dose, group] for dose in own["dose"]] + rng.uniform(-0.3, 0.3, len(own))
                y = own[name].clip(low, high)
                axis.scatter(
                    x, y, 14, colour, marker=marker, linewidths=0.9, alpha=0.85, label=group
                )
            if name in thresholds:
                axis.axhline(thresholds[name], color="0.25", linewidth=0.9, linestyle="--")
            axis.set_title(label, fontsize=9, fontweight="bold" if name in thresholds else "normal")
            axis.set_xticks(list(ticks.values()), [step_label(dose) for dose in ticks])
            axis.grid(visible=False, axis="x")
            for edge in edges:
                axis.axvline(edge, color="#DDDDDD", linewidth=0.6)
            axis.margins(y=0.08)
            axis.set_xlim(-0.8, max(places.values()) + 0.8)
            if k + columns >= len(signs):
                axis.set_xlabel("priming updates")
        crown(figure, title, axes[0].get_legend_handles_labels()[0], columns=len(_GROUPS))
        told = "; ".join(f"{group}: {_TOLD[group]}" for group in groups if group in _TOLD)
        missing = f" Not recorded: {', '.join(absent)}." if absent else ""
        small_print(figure, f"One mark is one run; outliers lie on the edge. {told}.{missing}")
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
        figure, (axis,) = panels(1, width=7.5, height=0.34 * len(signs) + 1.9)
        for at, task in enumerate(tasks):
            rows = table[table["task"] == task].set_index("sign").reindex(signs)
            y = np.arange(len(signs)) + 0.26 * ((len(tasks) - 1) / 2 - at)
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
        crown(figure, title, axis.get_legend_handles_labels()[0])
        small_print(
            figure,
            f"Bars: 95 % intervals. Dashed: a sign is used if the lower end is at least {usable:g} "
            "on the calibration task, here and against runs that were reset.",
        )
    return figure, table


def _places(
    values: pd.DataFrame, groups: Sequence[str]
) -> tuple[dict[tuple[int, str], float], dict[int, float]]:
    """Where each group of each dose stands, side by side, and the middle of each dose."""
    places: dict[tuple[int, str], float] = {}
    ticks: dict[int, float] = {}
    at = 0.0
    for dose, own in values.groupby("dose", sort=True):
        present = [group for group in groups if (own["group"] == group).any()]
        places |= {(int(dose), group): at + k for k, group in enumerate(present)}
        ticks[int(dose)] = at + (len(present) - 1) / 2
        at += len(present) + _GAP
    return places, ticks


def _limits(values: pd.Series, threshold: float | None) -> tuple[float, float]:
    """Where the axis ends: outliers, drawn at its edge, must not flatten the others."""
    known = values.dropna()
    if known.empty:
        return 0.0, 1.0
    low, middle, high = known.quantile([0.05, 0.5, 0.95])
    reach = 1.5 * max(high - middle, middle - low)
    ends = [max(known.min(), middle - reach), min(known.max(), middle + reach)]
    return min(*ends, threshold or ends[0]), max(*ends, threshold or ends[1])
