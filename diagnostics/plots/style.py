"""One look for all figures: colours that colour-blind readers can tell apart, light axes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from diagnostics.plots.colours import COLOURS as COLOURS
from diagnostics.plots.colours import CYCLE as CYCLE

# One colour per sampler in every figure of the project.
SAMPLER_COLOURS: dict[str, str] = {
    "uniform": COLOURS["blue"],
    "decay": COLOURS["orange"],
    "per": COLOURS["green"],
    "cuer": COLOURS["purple"],
}

RC: dict[Any, Any] = {
    "figure.dpi": 110,
    "figure.figsize": (6.4, 4.0),
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "axes.prop_cycle": cycler(color=[COLOURS[name] for name in CYCLE]),
    # Text stays text in a PDF, so that it can be searched and edited.
    "pdf.fonttype": 42,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in house style within the block, leaving global settings as they were."""
    with mpl.rc_context(RC):
        yield


def new_figure(
    columns: int = 1, *, width: float = 6.4, height: float = 4.0, **kwargs: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with a row of axes that belongs to no window: it can be drawn anywhere."""
    figure = Figure(figsize=(width * columns, height), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False, **kwargs)
    return figure, list(axes[0])
