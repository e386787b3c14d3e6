"""How the cost of an update grows with width, depth, batch and buffer: measured, fitted, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from speed_parts import Options
from speed_report import Part, seconds, table
from speed_rounds import interleave, say
from speed_workers import Contender

WIDTHS = (64, 128, 256, 512)
DEPTHS = (1, 2, 3, 4)
BATCHES = (64, 128, 256, 512, 1024)
BUFFERS = (10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Axis:
    """Milliseconds per update along one setting."""

    name: str
    about: str
    values: tuple[int, ...]
    milliseconds: tuple[float, ...]

    def fit(self) -> tuple[float, float]:
        """Exponent and factor of factor * value ** exponent, by least squares of the logs."""
        exponent, log_factor = np.polyfit(np.log(self.values), np.log(self.milliseconds), 1)
        return float(exponent), float(np.exp(log_factor))

    def exponent(self) -> str:
        """To two digits; what rounds to nothing has no sign."""
        return f"{round(self.fit()[0], 2) + 0.0:.2f}"


def scaling(options: Options) -> tuple[Part, list[Axis]]:
    """Measure the four axes; the points of an axis take turns."""
    obs, act = options.sizes[0]
    widest = max(options.widths)
    sac = Contender("fog", obs, act, min(256, widest), compiled=options.compiled, rows=options.rows)
    deep = replace(sac, variant="sac", depth=1)
    plans: list[tuple[str, str, dict[int, Contender]]] = [
        (
            "width",
            "SAC, batch 256",
            {width: replace(sac, width=width) for width in WIDTHS if width <= widest},
        ),
        (
            "depth",
            f"motivating critic, width {deep.width}",
            {depth: replace(deep, depth=depth) for depth in DEPTHS},
        ),
        (
            "batch",
            f"SAC, width {sac.width}",
            {batch: replace(sac, batch=batch) for batch in BATCHES},
        ),
        (
            "buffer",
            f"SAC, width {sac.width}, draw included",
            {rows: replace(sac, rows=rows) for rows in BUFFERS if rows <= 10 * options.rows},
        ),
    ]
    axes, data = [], []
    for name, about, points in plans:
        say(f"scaling: {name}")
        found = interleave({str(value): each for value, each in points.items()}, options.pace)
        times = found.times(options.clock)
        measured = {value: times[str(value)] for value in points if str(value) in times}
        if len(measured) < 2:
            continue
        middle = tuple(1000 * float(np.median(each)) for each in measured.values())
        axes.append(Axis(name, about, tuple(measured), middle))
        data.append(
            {
                "axis": name,
                "about": about,
                "values": list(measured),
                "milliseconds": list(middle),
                "exponent": axes[-1].fit()[0],
                "seconds_per_update": seconds(found),
            }
        )
    return Part("Scaling of an update", _table(axes), data), axes


def _table(axes: Sequence[Axis]) -> list[str]:
    rows = []
    for axis in axes:
        points = zip(axis.values, axis.milliseconds, strict=True)
        cells = ", ".join(f"{value:,}: {ms:.2f}" for value, ms in points)
        rows.append((f"{axis.name} ({axis.about})", cells, axis.exponent()))
    return table(["against", "ms per update", "exponent"], rows)


def draw(axes: Sequence[Axis], folder: Path, name: str, about: Mapping[str, Any]) -> None:
    """One panel for each axis, measured points and fitted power law, with the numbers beside it.

    Args:
        axes: What was measured.
        folder: Where image, numbers and provenance go.
        name: Of the files.
        about: Machine, versions, load and pace, without which a time means nothing.
    """
    from diagnostics.plots.layout import crown, panels, small_print, step_label
    from diagnostics.plots.save import save_figure
    from diagnostics.plots.style import COLOURS, styled

    with styled():
        figure, places = panels(len(axes), columns=4, width=2.9, height=3.2)
        for panel, axis in zip(places, axes, strict=True):
            exponent, factor = axis.fit()
            x = np.geomspace(axis.values[0], axis.values[-1])
            panel.plot(x, factor * x**exponent, color=COLOURS["grey"], lw=1.3)
            panel.plot(axis.values, axis.milliseconds, "o", ms=6, color=COLOURS["blue"])
            panel.set(xscale="log", yscale="log")
            panel.set_xlabel(f"{axis.name}: time $\\propto$ {axis.name}$^{{{axis.exponent()}}}$")
            panel.set_title(axis.about, fontsize=9)
            names = [f"{value:,}" if value < 10_000 else step_label(value) for value in axis.values]
            panel.set_xticks(axis.values, names)
            panel.minorticks_off()
            low, high = min(axis.milliseconds), max(axis.milliseconds)
            # A flat line must look flat: never less than a factor of four on the axis.
            room = max(1.0, np.sqrt(4 * low / high))
            panel.set_ylim(0.8 * low / room, 1.25 * high * room)
            low, high = panel.get_ylim()
            ticks = [tick for tick in _ticks() if low <= tick <= high]
            panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        places[0].set_ylabel("ms per update")
        handles = [places[0].lines[1], places[0].lines[0]]
        for handle, text in zip(handles, ("measured", "power law, fitted"), strict=True):
            handle.set_label(text)
        crown(figure, "Time of one update", handles)
        small_print(figure, "Medians over rounds; both axes logarithmic, each with its own range.")
    rows = [
        {"axis": axis.name, "about": axis.about, "value": value, "milliseconds": time}
        for axis in axes
        for value, time in zip(axis.values, axis.milliseconds, strict=True)
    ]
    parameters = {"command": "benchmarks/speed.py --only scaling", **about}
    save_figure(figure, name, folder, pd.DataFrame(rows), parameters)


def _ticks() -> list[float]:
    return [digit * 10.0**power for power in range(-3, 5) for digit in (1, 2, 5)]
