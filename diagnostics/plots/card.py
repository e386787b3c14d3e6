"""One run at a glance: what it earned, what it learned from, how fast it went."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from diagnostics.plots.layout import (
    calm_axis,
    crown,
    empty,
    log_axis,
    mark_events,
    panels,
    small_print,
    step_axis,
)
from diagnostics.plots.lines import NETWORKS
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
            rows = _depths(train, events) if column == "depth" else train
            (line,) = panel.plot(rows["env_step"], rows[column], color=COLOURS["blue"], lw=1.3)
            tables.append(_rows(column, rows["env_step"], rows[column]))
            if log and (rows[column].dropna() > 0).all():
                log_axis(panel)
            elif column == "depth":
                # Depth jumps; a slope between two rows would show blocks that never were.
                line.set_drawstyle("steps-post")
                panel.set_ylim(-0.1, max(2.0, float(rows[column].max())) * 1.08)
                panel.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
            elif column == "updates_per_second":
                panel.set_ylim(bottom=0)
            else:
                calm_axis(panel)
        for panel in axes:
            if panel.has_data():
                handles = mark_events(panel, events) or handles
                panel.set_xlim(left=0)
                step_axis(panel, "environment step" if panel in axes[3:] else "")
        crown(figure, title, handles)
        small_print(figure, "One run, one seed: no intervals.")
    columns = ["quantity", "env_step", "value"]
    return figure, pd.concat(tables) if tables else pd.DataFrame(columns=columns)


def _depths(train: pd.DataFrame, events: pd.DataFrame) -> pd.DataFrame:
    """Depth at every row of the train table and, exactly, at resets and expansions."""
    known = train[["env_step", "depth"]].dropna()
    if "depth" in events:
        jumps = events.loc[events["event"].isin(["reset", "expansion"]), ["env_step", "depth"]]
        known = pd.concat([known, jumps.dropna()])
    return known.sort_values("env_step", kind="stable")


_INSIDE = (
    ("rank", "rank of the\ncritic's features", False),
    ("positive", "share of outputs\nabove 0", False),
    ("effective_lr", "one update\n/ norm of weights", True),
    ("birth_distance", "distance to\nweights at birth", False),
    ("update_churn", "churn of one update", True),
    ("disagreement", "|Q1 - Q2| / std of Q", True),
)


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
                colour = COLOURS[NETWORKS.get(str(name), CYCLE[k])]
                # A lone measurement has no line: it needs a dot to be seen.
                marker = "o" if len(line) == 1 else ""
                panel.plot(
                    line["env_step"], line["value"], color=colour, lw=1.3, marker=marker, ms=4,
                    label=str(name).removesuffix("_rank").replace("_", " "),
                )  # fmt: skip
            if log and (rows["value"] > 0).all():
                log_axis(panel)
            elif quantity == "positive":
                panel.set_ylim(0, 1)
            else:
                panel.set_ylim(bottom=0)
            handles = mark_events(panel, events) or handles
            panel.set_xlim(left=0)
            step_axis(panel, "environment step" if panel in axes[3:] else "")
            panel.legend(
                loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=4, fontsize=8,
                handlelength=1.2, handletextpad=0.5, columnspacing=1.0, borderaxespad=0.2,
            )  # fmt: skip
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
