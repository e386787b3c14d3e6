"""Network expansion, drawn from the events of a run."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.ticker import MaxNLocator

from diagnostics.plots.layout import (
    EXPANSION_COLOUR,
    crown,
    event_steps,
    mark_events,
    panels,
    small_print,
    step_axis,
)
from diagnostics.plots.style import COLOURS, styled
from fog.records.sizes import NetworkSpec

Plot = tuple[Figure, pd.DataFrame]

_OLD, _NEW, _END = "#D6E6F2", "#FBE3D6", "#EEEEEE"


def network_growth(stages: pd.DataFrame, *, spec: NetworkSpec, title: str) -> Plot:
    """One column per stage between two resets: stem, residual blocks, head; new blocks framed.

    Args:
        stages: What `diagnostics.runs.architecture.fullest_cycle` returned.
        spec: Sizes of the run's networks.
        title: Headline.
    """
    deepest = int(stages["depth"].max())
    with styled():
        figure = Figure(
            figsize=(max(6.4, 3.1 * len(stages)), 2.4 + 0.75 * (deepest + 2)), layout="constrained"
        )
        axes = figure.subplots()
        axes.set_axis_off()
        earlier = int(stages["depth"].iloc[0])
        for column, stage in enumerate(stages.itertuples()):
            _stage(axes, 3.0 * column, stage, earlier, spec)
            earlier = int(stage.depth)
        axes.set_xlim(-1.35, 3.0 * (len(stages) - 1) + 1.35)
        axes.set_ylim(-1.9, deepest + 2.15)
        crown(figure, title)
        small_print(
            figure,
            "One Q network from input (bottom) to value (top). Framed: the block added by this "
            "expansion, freshly initialised on the residual path; old blocks keep their weights. "
            "Learning rate = initial rate x initial / current dense layers, head included.",
        )
    return figure, stages


def _stage(axes: Axes, x: float, stage: object, earlier: int, spec: NetworkSpec) -> None:
    depth, width = int(stage.depth), spec.width  # type: ignore[attr-defined]
    norm = ", LayerNorm" if spec.shape.layer_norm else ""
    sizes = " to ".join(map(str, (spec.obs_dim + spec.act_dim, *[width] * spec.shape.stem_layers)))
    _box(axes, x, 0, f"stem: Dense {sizes}{norm}\nactivation", _END, "#888888", 0.8)
    for block in range(depth):
        new = block >= earlier
        text = f"block {block + 1}: 2 x (Dense {width}{norm})"
        edge, line = (EXPANSION_COLOUR, 2.2) if new else ("#5C8DB5", 0.8)
        _box(axes, x, block + 1, text, _NEW if new else _OLD, edge, line)
        # The skip connection around the block, with the sum on the path to the next layer.
        axes.add_patch(
            FancyArrowPatch(
                (x + 1.0, block + 0.5),
                (x + 1.0, block + 1.5),
                connectionstyle="arc3,rad=0.55",
                arrowstyle="-|>",
                mutation_scale=8,
                color="#777777",
                lw=1.0,
            )
        )
    _box(axes, x, depth + 1, f"head: Dense {width} to 1", _END, "#888888", 0.8)
    for level in range(depth + 1):
        axes.annotate(
            "",
            (x, level + 0.72),
            (x, level + 0.28),
            arrowprops={"arrowstyle": "-|>", "color": "#444444", "lw": 1.0},
        )
    when = "start" if stage.event == "start" else stage.event  # type: ignore[attr-defined]
    axes.text(
        x,
        -0.5,
        f"{when}, env step {stage.env_step:,}\n"  # type: ignore[attr-defined]
        f"{stage.since_reset:,} updates since reset\n"  # type: ignore[attr-defined]
        f"{depth} block{'' if depth == 1 else 's'}, {stage.dense_layers} dense layers\n"  # type: ignore[attr-defined]
        f"{stage.critic_parameters:,} parameters\n"  # type: ignore[attr-defined]
        f"learning rate {stage.critic_lr:.3g}",  # type: ignore[attr-defined]
        ha="center",
        va="top",
        fontsize=9,
        linespacing=1.35,
    )


def _box(axes: Axes, x: float, y: float, text: str, face: str, edge: str, line: float) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (x - 1.0, y - 0.26), 2.0, 0.52, boxstyle="round,pad=0.02", fc=face, ec=edge, lw=line
        )
    )
    axes.text(x, y, text, ha="center", va="center", fontsize=7.5)


def growth_timeline(history: pd.DataFrame, last_step: float, events: pd.DataFrame) -> Plot:
    """Depth, parameters and learning rate of one run's critics over training.

    Args:
        history: What `diagnostics.runs.architecture.growth` returned.
        last_step: Where the run ends.
        events: The run's resets and expansions.
    """
    end = history.iloc[[-1]].assign(env_step=last_step)
    table = pd.concat([history, end], ignore_index=True)
    quantities = (
        ("depth", "residual blocks"),
        ("total_parameters", "parameters,\nall networks with targets"),
        ("critic_lr", "critic learning rate (1e-4)"),
    )
    with styled():
        figure, axes = panels(3, columns=3, width=3.7, height=3.3)
        for panel, (column, text) in zip(axes, quantities, strict=True):
            handles = mark_events(panel, events)
            panel.step(table["env_step"], table[column], where="post", color=COLOURS["blue"])
            panel.set_ylabel(text)
            panel.set_xlim(0, last_step)
            step_axis(panel)
        axes[0].yaxis.set_major_locator(MaxNLocator(integer=True))
        axes[1].yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes[2].yaxis.set_major_formatter(lambda value, _: f"{value * 1e4:g}")
        count = len(event_steps(events, "expansion"))
        crown(figure, f"Growth over the whole run: {count} expansions", handles)
    return figure, table
