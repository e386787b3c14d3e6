"""All contrasts of some claims in one figure: how far each is from zero, and which way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from diagnostics.plots.layout import crown, seeds_text, small_print
from diagnostics.plots.style import COLOURS, styled

Plot = tuple[Figure, pd.DataFrame]

LOOKS = {
    "reproduced": COLOURS["green"],
    "inconclusive": COLOURS["grey"],
    "not reproduced": COLOURS["orange"],
}
_MARKERS = "osD^vP"
"""One for each task; more tasks than these share them."""

_REACH = 4.0
"""Half-widths at which the axis ends; what lies beyond is drawn at its edge, with an arrow."""

_ROW = 0.215
"""Inches per line of the figure."""

_LETTER = 0.062
"""Inches per letter of a contrast's name, and about as much for one of a heading."""

_PANEL = 6.4
"""Inches at least between the names and the figure's right edge."""


def claims_forest(table: pd.DataFrame, name: str) -> Plot:
    """One line per contrast, one mark per task: the estimate over its interval's half-width.

    In these units every 95 % interval reaches one to either side, whatever was measured, so that
    marks right of 1 are reproduced and marks left of -1 went the other way.

    Args:
        table: `diagnostics.studies.verdicts.judge`; contrasts without data or with one
            seed are left out, as are those that do not count.
        name: whose claims they are.
    """
    rows = table[table["counts"].astype(bool) & table["low"].notna()]
    ends = rows[["low", "high"]].astype(float)
    ratio = rows["ratio"].astype(bool)
    ends[ratio] = np.log(ends[ratio])
    half = (ends["high"] - ends["low"]) / 2
    rows = rows.assign(distance=(ends["high"] + ends["low"]) / 2 / half)
    tasks = list(dict.fromkeys(rows["task"]))
    markers = {task: _MARKERS[place % len(_MARKERS)] for place, task in enumerate(tasks)}
    heads = len(rows[["claim", "what"]].drop_duplicates())
    contrasts = len(rows[["claim", "what", "sides"]].drop_duplicates())
    with styled():
        height = 1.9 + _ROW * (contrasts + 1.15 * heads)
        width = max(9.6, _PANEL + _LETTER * max(map(len, rows["sides"]), default=0))
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots()
        # In these units one band shows for all contrasts where an interval includes no difference.
        axes.axvspan(-1, 1, color="#F1F1F1", lw=0, zorder=0)
        axes.axvline(0, color=COLOURS["black"], lw=0.8)
        labels, y = [], 0.0
        told = ""
        for (claim, what), part in rows.groupby(["claim", "what"], sort=False):
            new = "" if claim == told else str(claim)
            if new and (1.2 * len(new) + len(str(what))) * _LETTER > _PANEL:
                _heading(axes, y, new, "")
                y, new = y + 1.0, ""
            _heading(axes, y, new, str(what))
            told = str(claim)
            y += 1.0
            for sides, cells in part.groupby("sides", sort=False):
                _marks(axes, y, cells, markers)
                labels.append((y, str(sides)))
                y += 1.0
            y += 0.15
        axes.set_yticks([at for at, _ in labels], [text for _, text in labels], fontsize=8)
        axes.set_ylim(y - 0.4, -0.7)
        axes.set_xlim(-1.05 * _REACH, 1.05 * _REACH)  # arrows keep clear of the names
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(
            "against the claim  <   estimate / half-width of its 95 % interval   >  as claimed"
        )
        place = f" ({tasks[0]})" if len(tasks) == 1 else ""
        crown(figure, f"Claims, contrast by contrast: {name}{place}", _handles(markers), columns=5)
        small_print(
            figure,
            "Unit: half the width of a contrast's own 95 % interval (Student, Welch; ratios as "
            "logarithms), so that all intervals have the same length. Grey band: the interval "
            "includes no difference. Right of it the claim is reproduced, left of it the opposite "
            f"was found. {seeds_text([int(count) for count in rows['seeds']]).capitalize()} each; "
            "arrows: further out than the axis.",
        )
    return figure, rows


def _heading(axes: Axes, y: float, claim: str, what: str) -> None:
    """The claim in bold and, on the same line, what was measured; once if it was told before."""
    axes.axhspan(y - 0.46, y + 0.46, color="white", lw=0, zorder=2)
    style: dict[str, Any] = {"va": "center", "zorder": 3, "transform": axes.get_yaxis_transform()}
    soft: dict[str, Any] = {"fontsize": 8, "color": "#555555", "zorder": 3}
    if not claim:
        axes.text(0.008, y, what, **style | soft)
        return
    name = axes.text(0.008, y, claim, fontsize=9, fontweight="bold", **style)
    axes.annotate(
        what, (1, 0), (8, 0), xycoords=name, textcoords="offset points", va="bottom", **soft
    )


def _marks(axes: Axes, y: float, cells: pd.DataFrame, markers: dict[str, str]) -> None:
    """The tasks of one contrast, one above the other within its line."""
    spread = 0.36 if len(cells) > 1 else 0.0
    heights = y + np.linspace(-spread, spread, len(cells)) / 1.6
    for height, row in zip(heights, cells.itertuples(), strict=True):
        colour = LOOKS[row.verdict]
        style: dict[str, Any] = {"color": colour, "clip_on": False, "zorder": 4}
        at = float(np.clip(row.distance, -_REACH, _REACH))
        if abs(row.distance) <= _REACH:
            axes.plot([at - 1, at + 1], [height, height], color=colour, lw=1.2)
        else:
            tip = ">" if row.distance > 0 else "<"
            axes.plot(at * 1.022, height, marker=tip, ms=4, **style)
        axes.plot(at, height, marker=markers[row.task], ms=4.5, **style)


def _handles(markers: dict[str, str]) -> list[Line2D]:
    """Colours say the verdict, shapes the task."""
    shown: dict[str, Any] = {"ls": "", "ms": 6}
    verdicts = [
        Line2D([], [], marker="o", color=colour, label=word, **shown)
        for word, colour in LOOKS.items()
    ]
    tasks = [
        Line2D([], [], marker=marker, color="#444444", mfc="none", label=task, **shown)
        for task, marker in markers.items()
    ]
    return verdicts + (tasks if len(tasks) > 1 else [])
