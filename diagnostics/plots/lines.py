"""How each line of a figure looks: the variant's colour, and a stroke where two would be alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from diagnostics.paper import names
from diagnostics.plots.colours import COLOURS

Stroke = str | tuple[int, tuple[int, ...]]
"""A line style of matplotlib: a name, or where a pattern starts and its dashes and gaps."""

STROKES: tuple[Stroke, ...] = ("-", "--", ":", "-.", (0, (9, 2)), (0, (4, 1, 1, 1, 1, 1)))
NETWORKS = {"online": "blue", "offline": "orange", "value": "green", "actor": "purple"}
"""One colour per network in every figure of one run."""

_SPARE = ("purple", "grey", "green", "sky", "amber", "blue", "orange")


@dataclass(frozen=True)
class Line:
    """How one series is drawn."""

    label: str
    colour: str
    stroke: Stroke


def lines(series: Iterable[str]) -> dict[str, Line]:
    """A look for each series of one figure: no two share colour and stroke.

    Args:
        series: labels of `diagnostics.load`: a variant, or a variant and a remark such as
            `sac (scale 0.02)`, which is kept; or names of networks.
    """
    taken: set[tuple[str, Stroke]] = set()
    found: dict[str, Line] = {}
    for k, name in enumerate(series):
        own = names.colour(name) or NETWORKS.get(name) or _SPARE[k % len(_SPARE)]
        # A study of doses has more series of one colour than there are strokes.
        looks = [(colour, stroke) for colour in (own, *_SPARE) for stroke in STROKES]
        colour, stroke = next((look for look in looks if look not in taken), (own, "-"))
        taken.add((colour, stroke))
        found[name] = Line(names.label(name), COLOURS[colour], stroke)
    return found
