"""One run at a glance: what it earned, what it learned from, how fast it went."""

from __future__ import annotations

import pandas as pd
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
)
from diagnostics.plots.style import COLOURS, CYCLE, styled

Plot = tuple[Figure, pd.DataFrame]

_PANELS = (
    ("critic_loss", "critic loss", True),
    ("q", "mean Q of the batch", False),
    ("temperature", "temperature", True),
    ("depth", "residual blocks", False),
    ("updates_per_second", "updates per second", False),
)


def run_overview(
    evals: pd.DataFrame, train: pd.DataFrame, events: pd.DataFrame, *, title: str
) -> Plot:
    """Six panels over training: return, critic loss, Q, temperature, depth, speed.

    Args:
        evals: One row per evaluation episode of one run.
        train: The run's train table.
        events: Its events.
        title: Headline.
    """
    tables = []
    with styled():
        figure, axes = panels(6, columns=3, width=3.7, height=2.7)
        handles: list[Line2D] = []
        if len(evals):
            means = evals.groupby("env_step")["return"].mean()
            axes[0].plot(evals["env_step"], evals["return"], "o", ms=2.5, mew=0, color="#999999")
            axes[0].plot(means.index, means, color=COLOURS["blue"])
            tables.append(_rows("return", means.index, means))
        else:
            empty(axes[0], "not evaluated yet")
        axes[0].set_ylabel("evaluation return\n(dots: episodes)")
        for panel, (column, text, log) in zip(axes[1:], _PANELS, strict=True):
            panel.set_ylabel(text)
            if column not in train or not train[column].notna().any():
                empty(panel, "not recorded")
                continue
            # Depth jumps; a slope between two rows would show blocks that never were.
            jumps = column == "depth"
            (line,) = panel.plot(train["env_step"], train[column], color=COLOURS["blue"], lw=1.3)
            if jumps:
                line.set_drawstyle("steps-pre")
                panel.yaxis.set_major_locator(MaxNLocator(integer=True))
            tables.append(_rows(column, train["env_step"], train[column]))
            if log and (train[column].dropna() > 0).all():
                log_axis(panel)
        for panel in axes:
            if panel.has_data():
                handles = mark_events(panel, events) or handles
                panel.set_xlim(left=0)
                step_axis(panel, "environment step" if panel in axes[3:] else "")
        crown(figure, title, handles)
        small_print(figure, "One run, one seed: no intervals.")
    columns = ["quantity", "env_step", "value"]
    return figure, pd.concat(tables) if tables else pd.DataFrame(columns=columns)


_INSIDE = (
    ("rank", "rank of the critic's features", False),
    ("positive", "share of outputs above 0", False),
    ("effective_lr", "one update / norm of weights", True),
    ("birth_distance", "distance to weights at birth", False),
    ("update_churn", "churn of one update", True),
    ("disagreement", "|Q1 - Q2| / std of Q", True),
)
_NETWORKS = {"online": "blue", "offline": "orange", "value": "green", "actor": "purple"}


def run_inside(table: pd.DataFrame, events: pd.DataFrame, *, title: str) -> Plot:
    """Six panels over training of what probes saw inside the networks.

    Args:
        table: What `diagnostics.metrics.internals.curves_inside` returned.
        events: The run's events.
        title: Headline.
    """
    with styled():
        figure, axes = panels(6, columns=3, width=3.7, height=2.9)
        handles: list[Line2D] = []
        for panel, (quantity, text, log) in zip(axes, _INSIDE, strict=True):
            panel.set_ylabel(text)
            rows = table[(table["quantity"] == quantity) & table["value"].notna()]
            if rows.empty:
                empty(panel, "not recorded")
                continue
            for k, (name, line) in enumerate(rows.groupby("line", sort=False)):
                colour = COLOURS[_NETWORKS.get(str(name), CYCLE[k])]
                # A lone measurement has no line: it needs a dot to be seen.
                marker = "o" if len(line) == 1 else ""
                panel.plot(
                    line["env_step"], line["value"], color=colour, lw=1.3, marker=marker, ms=4,
                    label=str(name).replace("_", " "),
                )  # fmt: skip
            if log and (rows["value"] > 0).all():
                log_axis(panel)
            handles = mark_events(panel, events) or handles
            panel.set_xlim(left=0)
            step_axis(panel, "environment step" if panel in axes[3:] else "")
            panel.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=7.5)
        crown(figure, title, handles)
        small_print(
            figure,
            "One run, one seed: no intervals. Ranks, churn and disagreement are the online "
            "critic's; docs/probes.md says what each can and cannot tell.",
        )
    return figure, table


def _rows(quantity: str, steps: pd.Index | pd.Series, values: pd.Series) -> pd.DataFrame:
    return pd.DataFrame(
        {"quantity": quantity, "env_step": steps.to_numpy(), "value": values.to_numpy(float)}
    )
