"""Published curves and scores beside ours: lines, printed cells as diamonds, bars by suite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from diagnostics.paper.methods import method
from diagnostics.plots.layout import crown, panels, seeds_text, small_print, step_axis
from diagnostics.plots.lines import Line
from diagnostics.plots.style import COLOURS, styled

Plot = tuple[Figure, pd.DataFrame]

_LOOKS: dict[str, tuple[str, str]] = {
    "tdmpc2": ("purple", "-"),
    "simba-utd2": ("green", "-"),
    "bro-utd2": ("sky", "-"),
    "bro-utd10": ("blue", "-"),
    "simbav2-utd2": ("amber", "-"),
    "xqc": ("grey", "-"),
}
_SPARE = ("purple", "green", "blue", "amber", "grey", "sky")
_PAPER: dict[str, str] = {"FoG": "black", "TD-MPC2": "purple", "SimBa": "green", "BRO": "sky"}
"""A printed cell has the colour of the published runs that are behind it."""

_OURS = ("-", "--", ":", "-.")
_BAND = (
    "Lines: mean over seeds. Shaded: 95 % Student interval over {seeds}{single}, cut off at the "
    "panel. Steps are frames."
)


def looks(names: Iterable[str], ours: Iterable[str] = ()) -> dict[str, Line]:
    """A line for each published method and, in orange, for each label of ours."""
    found: dict[str, Line] = {}
    spare = 0
    for name in names:
        colour, stroke = _LOOKS.get(name, ("", "--"))
        if not colour:
            colour, spare = _SPARE[spare % len(_SPARE)], spare + 1
        found[name] = Line(method(name).label, COLOURS[colour], stroke)
    for place, name in enumerate(ours):
        found[name] = Line(name, COLOURS["orange"], _OURS[place % len(_OURS)])
    return found


def peer_curves(
    table: pd.DataFrame,
    cells: pd.DataFrame,
    styles: Mapping[str, Line],
    *,
    title: str,
    ylabels: Mapping[str, str],
    columns: int = 4,
    remark: str = "",
) -> Plot:
    """One panel per task: published curves, ours, and the paper's printed cells at T.

    Args:
        table: Columns `task`, `series`, `env_step` (frames), `mean`, `low`, `high`, `seeds`.
        cells: Columns `task`, `algorithm`, `mean`, `std`, `steps`: the printed cells.
        styles: The look of each series, in the order of the legend.
        title: Headline.
        ylabels: What the values of each task are.
        columns: Panels per row.
        remark: Added to the small print.
    """
    tasks = list(dict.fromkeys(cells["task"])) or list(dict.fromkeys(table["task"]))
    with styled():
        single = len(tasks) == 1
        size = {"width": 7.6, "height": 4.6} if single else {"width": 3.6, "height": 2.7}
        figure, axes = panels(len(tasks), columns=columns, **size)
        for place, (panel, task) in enumerate(zip(axes, tasks, strict=True)):
            rows = table[table["task"] == task]
            for series, style in styles.items():
                _line(panel, rows[rows["series"] == series], style)
            printed = cells[cells["task"] == task]
            _diamonds(panel, printed)
            panel.set_ylim(_limits(rows, printed))
            panel.set_title("" if single else task, fontsize=10)
            panel.set_xlim(left=0)
            step_axis(panel, "frames" if place + columns >= len(tasks) else "")
            if place % columns == 0 or ylabels[task] != ylabels[tasks[place - 1]]:
                panel.set_ylabel(ylabels[task])
        crown(
            figure,
            title,
            [*_handles(styles, table), *_cell_handles(cells)],
            columns=4 if single else 5,
        )
        small_print(figure, _bands_text(table) + remark)
    return figure, table


def _limits(rows: pd.DataFrame, cells: pd.DataFrame) -> tuple[float, float]:
    """A y axis for means and cells: the interval of three seeds may be wider than all that."""
    ends = [rows["mean"], cells["mean"] - cells["std"], cells["mean"] + cells["std"]]
    low, high = (float(pick(np.concatenate(ends))) for pick in (np.min, np.max))
    room = 0.07 * max(high - low, 1e-9)
    return low - room, high + room


def _line(axes: Axes, rows: pd.DataFrame, style: Line) -> None:
    if rows.empty:
        return
    marker = "o" if len(rows) == 1 else ""
    axes.plot(
        rows["env_step"], rows["mean"], color=style.colour, ls=style.stroke, marker=marker, ms=4,
        lw=1.5,
    )  # fmt: skip
    known = rows.dropna(subset=["low", "high"])
    if len(known):
        axes.fill_between(
            known["env_step"], known["low"], known["high"], color=style.colour, alpha=0.15, lw=0
        )


def _diamonds(axes: Axes, cells: pd.DataFrame) -> None:
    """Printed cells right of T, side by side: mean and population deviation."""
    for place, cell in enumerate(cells.itertuples()):
        colour = COLOURS[_PAPER[cell.algorithm]]
        axes.errorbar(
            cell.steps * (1.03 + 0.03 * place), cell.mean, cell.std, fmt="D", ms=4.5, mec=colour,
            mfc=colour if cell.algorithm == "FoG" else "white", ecolor=colour, elinewidth=1.0,
        )  # fmt: skip


def _handles(styles: Mapping[str, Line], table: pd.DataFrame) -> list[Artist]:
    present = set(table["series"])
    return [
        Line2D([], [], color=style.colour, ls=style.stroke, label=style.label)
        for series, style in styles.items()
        if series in present
    ]


def _cell_handles(cells: pd.DataFrame) -> list[Artist]:
    return [
        Line2D(
            [],
            [],
            ls="",
            marker="D",
            ms=4.5,
            mec=COLOURS[_PAPER[name]],
            mfc=COLOURS[_PAPER[name]] if name == "FoG" else "white",
            label=f"{name} (printed cell)",
        )
        for name in dict.fromkeys(cells["algorithm"])
    ]


def _bands_text(table: pd.DataFrame) -> str:
    seeds = [int(count) for count in table["seeds"]]
    single = "; none where there is one seed" if seeds and min(seeds) < 2 else ""
    return _BAND.format(seeds=seeds_text(seeds), single=single)


def peer_bars(
    table: pd.DataFrame, styles: Mapping[str, Line], *, title: str, ylabel: str, remark: str
) -> Plot:
    """Scores by suite: the paper's printed means hatched, published runs and ours in colour.

    Args:
        table: Columns `group`, `series`, `source` (paper, published, ours), `score`, `low`,
            `high`, `tasks`, `of` (tasks of the group) and `seeds`, in drawing order.
        styles: The look of each series that is not the paper's.
        title: Headline.
        ylabel: What a score is.
        remark: Small print.
    """
    groups = list(dict.fromkeys(table["group"]))
    series = list(dict.fromkeys(zip(table["series"], table["source"], strict=True)))
    width = 0.86 / max(1, len(series))
    handles = []
    with styled():
        figure, (axes,) = panels(1, width=max(7.0, 1.75 * len(groups) + 1.2), height=4.4)
        for place, (name, source) in enumerate(series):
            rows = table[(table["series"] == name) & (table["source"] == source)]
            rows = rows.set_index("group").reindex(groups)
            x = np.arange(len(groups)) + (place - (len(series) - 1) / 2) * width
            colour = COLOURS[_PAPER[name]] if source == "paper" else styles[name].colour
            text = f"{name} (paper)" if source == "paper" else styles[name].label
            hatch = "////" if source == "paper" and name != "FoG" else ""
            axes.bar(x, rows["score"], width * 0.92, color=colour, hatch=hatch, ec="white", lw=0.3)
            ends = [
                (rows["score"] - rows["low"]).clip(lower=0),
                (rows["high"] - rows["score"]).clip(lower=0),
            ]
            axes.errorbar(x, rows["score"], ends, fmt="none", ecolor="#222222", lw=0.9)
            for at, row in zip(x, rows.itertuples(), strict=True):
                if np.isnan(row.score):
                    _upright(axes, at, "none", COLOURS["grey"])
                elif row.tasks < row.of:
                    _upright(axes, at, f"{row.tasks:.0f} of {row.of:.0f}", "white")
            handles.append(Patch(fc=colour, hatch=hatch, ec="white", label=text))
        axes.set_xticks(np.arange(len(groups)), groups)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(ylabel)
        axes.axhline(0, color=COLOURS["black"], lw=0.8)
        axes.margins(x=0.01, y=0.05)
        crown(figure, title, handles, columns=6)
        small_print(figure, remark)
    return figure, table


def _upright(axes: Axes, x: float, text: str, colour: str) -> None:
    axes.text(
        x, 0.012, text, transform=axes.get_xaxis_transform(), rotation=90, ha="center",
        va="bottom", fontsize=6.5, color=colour,
    )  # fmt: skip


def cell_matrix(table: pd.DataFrame, *, title: str, remark: str) -> Plot:
    """The verdict on every baseline cell of the paper: tasks down, algorithms across.

    Args:
        table: `diagnostics.peers.cells.cells`.
        title: Headline.
        remark: Small print.
    """
    fills = {"reproduced": "#CFE8DC", "not reproduced": "#F6D9C6", "no public runs": "#EEEEEE"}
    tasks = list(dict.fromkeys(table["task"]))
    algorithms = list(dict.fromkeys(table["algorithm"]))
    groups = table.drop_duplicates("task").set_index("task")["group"]
    with styled():
        figure = Figure(figsize=(8.6, 1.5 + 0.225 * len(tasks)), layout="constrained")
        axes = figure.subplots()
        for cell in table.itertuples():
            x, y = algorithms.index(cell.algorithm), tasks.index(cell.task)
            axes.fill_between(
                [x - 0.49, x + 0.49], y - 0.46, y + 0.46, color=fills[cell.verdict], lw=0
            )
            shown = cell.method if cell.verdict == "reproduced" else cell.verdict
            axes.text(x - 0.46, y, f"{cell.mean:,.2f} ± {cell.std:,.2f}", va="center", fontsize=7.5)
            axes.text(x + 0.46, y, shown, va="center", ha="right", fontsize=7, color="#444444")
        for y, (task, before) in enumerate(zip(tasks[1:], tasks, strict=False), 1):
            if groups[task] != groups[before]:
                axes.axhline(y - 0.5, color=COLOURS["black"], lw=0.8)
        axes.set_xlim(-0.5, len(algorithms) - 0.5)
        axes.set_ylim(len(tasks) - 0.5, -0.5)
        axes.set_xticks(range(len(algorithms)), [f"{name}, as printed" for name in algorithms])
        axes.set_yticks(range(len(tasks)), tasks, fontsize=8)
        axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        handles = [Patch(fc=fill, label=word) for word, fill in fills.items()]
        crown(figure, title, handles)
        small_print(figure, remark)
    return figure, table


def grid_gains(table: pd.DataFrame, styles: Mapping[str, Line], *, title: str) -> Plot:
    """What a finer grid of evaluations adds to the best score, by suite.

    Args:
        table: Columns `group`, `series`, `gain` (points of normalised score that the file's own
            grid adds over `grid_steps`), `low`, `high`, `grid_steps`, `own_steps`, `runs`.
        styles: The look of each series.
        title: Headline.
    """
    groups = list(dict.fromkeys(table["group"]))
    series = [name for name in styles if name in set(table["series"])]
    width = 0.8 / max(1, len(series))
    with styled():
        figure, (axes,) = panels(1, width=max(7.0, 1.6 * len(groups)), height=3.8)
        handles = []
        for place, name in enumerate(series):
            rows = table[table["series"] == name].set_index("group").reindex(groups)
            x = np.arange(len(groups)) + (place - (len(series) - 1) / 2) * width
            axes.bar(x, 100 * rows["gain"], width * 0.9, color=styles[name].colour)
            ends = [100 * (rows["gain"] - rows["low"]), 100 * (rows["high"] - rows["gain"])]
            axes.errorbar(
                x, 100 * rows["gain"], np.nan_to_num(ends), fmt="none", ecolor="#222222", lw=0.9
            )
            handles.append(Patch(fc=styles[name].colour, label=styles[name].label))
        axes.set_xticks(np.arange(len(groups)), groups)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("points of normalised score added")
        axes.axhline(0, color=COLOURS["black"], lw=0.8)
        crown(figure, title, handles, columns=4)
        small_print(
            figure,
            "Best before T among all evaluations of a file, minus best on the coarsest grid of "
            "those compared, in hundredths of the suite's constant; 95 % Student interval over "
            "runs. Methods evaluated on that grid themselves gain nothing and are not drawn.",
        )
    return figure, table
