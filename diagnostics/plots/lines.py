"""How each line of a figure looks: the variant's colour, and a stroke where two would be alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from diagnostics.paper import names
from diagnostics.plots.colours import COLOURS

_STROKES = ("-", "--", ":", "-.")
NETWORKS = {"online": "blue", "offline": "orange", "value": "green", "actor": "purple"}
"""One colour per network in every figure of one run."""

_SPARE = ("purple", "grey", "green", "sky", "amber", "blue", "orange")


@dataclass(frozen=True)
class Line:
    """How one series is drawn."""

    label: str
    colour: str
    stroke: str


def lines(series: Iterable[str]) -> dict[str, Line]:
    """A look for each series of one figure: no two share colour and stroke.

    Args:
        series: labels of `diagnostics.load`: a variant, or a variant and a remark such as
            `sac (scale 0.02)`, which is kept; or names of networks.
    """
    taken: set[tuple[str, str]] = set()
    found: dict[str, Line] = {}
    for k, name in enumerate(series):
        colour = names.colour(name) or NETWORKS.get(name) or _SPARE[k % len(_SPARE)]
        stroke = next((s for s in _STROKES if (colour, s) not in taken), "-")
        taken.add((colour, stroke))
        found[name] = Line(names.label(name), COLOURS[colour], stroke)
    return found
