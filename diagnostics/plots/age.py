"""One run's old and new data: is the new still learned, the old still its own, do both agree."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from diagnostics.plots.layout import (
    crown,
    empty,
    log_axis,
    mark_events,
    panels,
    small_print,
    step_axis,
    step_label,
)
from diagnostics.plots.style import COLOURS, styled

Plot = tuple[Figure, pd.DataFrame]

_TODAY, _FRESH = COLOURS["orange"], COLOURS["blue"]
_FITS = {"targets": ("o", COLOURS["green"]), "change": ("s", COLOURS["purple"])}
_MOMENTS = 6
"""Measurements that one panel of lines can hold."""


def warm_start(table: pd.DataFrame, events: pd.DataFrame, *, title: str) -> Plot:
    """The gap over training, and the loss curves of the last measurement.

    Args:
        table: The table `warmstart` of one run.
        events: Its events.
        title: Headline.
    """
    means = table.groupby(["fit", "env_step"])[["gap", "gap_fitted"]].mean()
    with styled():
        figure, (gaps, *losses) = panels(3, columns=3, width=4.0, height=3.4)
        gaps.axhline(0.0, color="#999999", lw=0.8)
        for fit, (marker, colour) in _FITS.items():
            if fit in means.index:
                line = means.loc[fit]
                gaps.plot(line.index, line["gap"], color=colour, marker=marker, ms=3, label=fit)
        gaps.set_ylabel("gap: ln(today / fresh)\nabove 0: today's is worse")
        gaps.legend(title="fit", loc="best")
        gaps.set_title("gap after the fit, over training", fontsize=10)
        handles = mark_events(gaps, events)
        gaps.set_xlim(left=0)
        step_axis(gaps)
        for axes, fit in zip(losses, _FITS, strict=True):
            _loss_curves(axes, table[(table["fit"] == fit) & table["gap"].notna()], fit)
        handles = [
            Line2D([], [], color=_TODAY, label="today's critic"),
            Line2D([], [], color=_FRESH, label="a fresh critic"),
            Line2D([], [], color="#555555", label="held-out rows"),
            Line2D([], [], color="#555555", ls="--", label="fitted rows"),
            *handles,
        ]
        crown(figure, title, handles, columns=6)
        small_print(
            figure,
            "Both critics learn from the newest window for as many steps. targets: the targets "
            "themselves, where today's critic has a head start. change: of the output from where "
            "it stood, from the same loss. Mean of the twins; one run, one seed: no intervals.",
        )
    return figure, means.reset_index()


def _loss_curves(axes: Axes, measured: pd.DataFrame, fit: str) -> None:
    """Loss over the steps of the last measurement of one kind of fit."""
    axes.set_title(f"fit: {fit}", fontsize=10)
    if measured.empty:
        empty(axes, "no window was large enough")
        return
    last = measured[measured["env_step"] == measured["env_step"].max()]
    for name, colour in (("today", _TODAY), ("fresh", _FRESH)):
        for suffix, stroke in (("", "-"), ("_fitted", "--")):
            curve = np.mean(np.stack(last[name + suffix].to_list()), axis=0)
            axes.plot(last["steps"].iloc[0], curve, color=colour, ls=stroke)
    log_axis(axes)
    step = step_label(float(last["env_step"].iloc[0]))
    axes.set_title(f"fit: {fit}, measured at step {step}", fontsize=10)
    axes.set_ylabel("loss / variance\nof the targets")
    axes.set_xlabel("optimiser step of the fit")


def off_policy(table: pd.DataFrame, *, title: str) -> Plot:
    """Log density and distance of stored actions under the policy of the time, over their age.

    Args:
        table: The table `offpolicy` of one run.
        title: Headline.
    """
    steps = np.unique(table["env_step"])
    kept = steps[np.unique(np.linspace(0, len(steps) - 1, _MOMENTS).round().astype(int))]
    shown = table[table["env_step"].isin(kept)]
    # A dark line is late: the light end of the map would vanish on white.
    shades = matplotlib.colormaps["viridis_r"](np.linspace(0.15, 1.0, len(kept)))
    columns = {
        "log_prob_median": "median of the window:\n" + r"$\log\,\pi(a\,|\,s)$",
        "distance": "mean of the window:\n" + r"$|a - \mu(s)|$",
    }
    with styled():
        figure, axes = panels(2, columns=2, width=4.6, height=3.4)
        for panel, (column, text) in zip(axes, columns.items(), strict=True):
            panel.set_ylabel(text)
            if not shown[column].notna().any():
                empty(panel, "the policy is deterministic:\nit has no density")
                continue
            for step, shade in zip(kept, shades, strict=True):
                rows = shown[shown["env_step"] == step].sort_values("age")
                panel.plot(rows["age"], rows[column], color=shade, marker="o", ms=3)
            panel.set_xlim(left=0)
            step_axis(panel, "age of the data in environment steps")
        handles = [
            Line2D(
                [], [], color=shade, marker="o", ms=3, label=f"at {step_label(float(step))} steps"
            )
            for step, shade in zip(kept, shades, strict=True)
        ]
        crown(figure, title, handles, columns=6)
        small_print(
            figure,
            "Each line is one measurement, at the step of the legend; each dot is an insertion "
            "window. Left: the lower, the less "
            "today's policy would do what was done then. One run, one seed: no intervals.",
        )
    return figure, shown[["env_step", "window", "age", *columns]]


def interference(
    table: pd.DataFrame, ranks: pd.DataFrame, events: pd.DataFrame, *, title: str
) -> Plot:
    """Cosines of the gradients on old and new data at the end, and effective ranks over training.

    Args:
        table: The table `interference` of one run.
        ranks: Its table `interference_rank`.
        events: Its events.
        title: Headline.
    """
    step = table["env_step"].max()
    last = table[table["env_step"] == step]
    cosines = last.pivot(index="window", columns="other", values="cosine")
    with styled():
        figure, (heat, lines) = panels(2, columns=2, width=4.6, height=3.6, width_ratios=[3, 4])
        _heatmap(heat, cosines)
        heat.set_title(f"measured at step {step_label(float(step))}", fontsize=10)
        bar = figure.colorbar(heat.collections[0], ax=heat, pad=0.02)
        bar.set_label("cosine of the mean gradients")
        shares = {
            "single transitions": ranks["sample_rank"] / ranks["samples"],
            "windows": ranks["window_rank"] / ranks["windows"],
        }
        colours = (COLOURS["blue"], COLOURS["amber"])
        for (label, share), colour in zip(shares.items(), colours, strict=True):
            lines.plot(ranks["env_step"], share, color=colour, marker="o", ms=3, label=label)
        marks = mark_events(lines, events)
        lines.set_xlim(left=0)
        lines.set_ylim(0, 1.03)
        lines.set_ylabel("effective rank of gradients\n/ their number")
        step_axis(lines)
        crown(figure, title, [*lines.get_legend_handles_labels()[0], *marks])
        small_print(
            figure,
            "Above 0 a step on one window's loss lowers the other's; below 0 it raises it. A rank "
            "near 0: all gradients point along few directions. One run, one seed: no intervals.",
        )
    return figure, last[["env_step", "window", "other", "age", "other_age", "cosine"]]


def _heatmap(axes: Axes, cosines: pd.DataFrame) -> None:
    """Oldest window at the top and at the left."""
    axes.grid(visible=False)
    axes.pcolormesh(
        np.arange(len(cosines) + 1) - 0.5,
        np.arange(len(cosines) + 1) - 0.5,
        np.ma.masked_invalid(cosines.to_numpy()),
        cmap="PuOr_r",
        norm=Normalize(-1, 1),
        rasterized=True,
    )
    axes.invert_yaxis()
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        axis.set_major_formatter(lambda at, _: _window(cosines, at))
    axes.set_xlabel("insertion window (oldest at the left)")
    axes.set_ylabel("insertion window\n(oldest at the top)")


def _window(cosines: pd.DataFrame, at: float) -> str:
    inside = 0 <= at < len(cosines) and at == round(at)
    return str(cosines.index[round(at)]) if inside else ""
