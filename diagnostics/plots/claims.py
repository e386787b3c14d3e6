"""All contrasts of the paper's claims in one figure: how far each is from zero, and which way."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from diagnostics.plots.layout import crown, seeds_text, small_print
from diagnostics.plots.style import COLOURS, styled

Plot = tuple[Figure, pd.DataFrame]

LOOKS = {
    "reproduced": ("o", COLOURS["green"]),
    "inconclusive": ("o", COLOURS["grey"]),
    "not reproduced": ("X", COLOURS["orange"]),
}
_REACH = 4.0
"""Half-widths at which the axis ends; what lies beyond is drawn at its edge, as an arrow."""


def claims_forest(table: pd.DataFrame) -> Plot:
    """One line per contrast: the estimate in units of its interval's half-width.

    In these units every 95 % interval reaches one to either side, whatever was measured, so that
    points right of 1 are reproduced and points left of -1 went the other way.

    Args:
        table: `diagnostics.studies.verdicts.judge`; contrasts without data or with one
            seed are left out, as are those that do not count.
    """
    rows = table[table["counts"].astype(bool) & table["low"].notna()]
    ends = rows[["low", "high"]].astype(float)
    ratio = rows["ratio"].astype(bool)
    ends[ratio] = np.log(ends[ratio])
    half = (ends["high"] - ends["low"]) / 2
    rows = rows.assign(distance=(ends["high"] + ends["low"]) / 2 / half)
    claims = list(dict.fromkeys(rows["claim"]))
    with styled():
        heads = len(rows[["claim", "what"]].drop_duplicates())
        height = 1.6 + 0.21 * (len(rows) + 1.8 * heads + 0.6 * len(claims))
        figure = Figure(figsize=(9.6, height), layout="constrained")
        axes = figure.subplots()
        labels, y = [], 0.0
        for claim in claims:
            axes.text(-_REACH + 0.06, y, claim, va="center", fontsize=10, fontweight="bold")
            told = ""
            for row in rows[rows["claim"] == claim].itertuples():
                if row.what != told:
                    told = row.what
                    y += 0.9
                    axes.text(-_REACH + 0.06, y, told, va="center", fontsize=8, color="#555555")
                    y += 0.9
                marker, colour = LOOKS[row.verdict]
                at = float(np.clip(row.distance, -_REACH, _REACH))
                if abs(row.distance) > _REACH:
                    marker = ">" if row.distance > 0 else "<"
                else:
                    axes.plot([at - 1, at + 1], [y, y], color=colour, lw=1.4)
                axes.plot(at, y, marker, color=colour, ms=6, clip_on=False)
                labels.append((y, f"{row.sides}, {row.task}"))
                y += 1.0
            y += 0.6
        axes.axvline(0, color=COLOURS["black"], lw=0.8)
        axes.set_yticks([at for at, _ in labels], [text for _, text in labels], fontsize=8)
        axes.set_ylim(y - 0.4, -0.8)
        axes.set_xlim(-_REACH, _REACH)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(
            "against the paper  <   estimate / half-width of its 95 % interval   >  as in the paper"
        )
        handles = [
            Line2D([], [], ls="", marker=marker, color=colour, ms=6, label=word)
            for word, (marker, colour) in LOOKS.items()
        ]
        crown(figure, "The paper's claims, contrast by contrast", handles)
        small_print(
            figure,
            "Lines are 95 % intervals (Student, Welch) over "
            f"{seeds_text([int(count) for count in rows['seeds']])}; arrows lie beyond the axis.",
        )
    return figure, rows
