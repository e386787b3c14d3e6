"""The colours of all figures, without matplotlib, because tables use their order too."""

from __future__ import annotations

# Okabe and Ito (2008). Black is kept for theory, so that a line and its observations stay apart.
COLOURS: dict[str, str] = {
    "blue": "#0072B2",
    "orange": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "amber": "#E69F00",
    "yellow": "#F0E442",
    "black": "#000000",
    "grey": "#7F7F7F",
}
CYCLE = ("blue", "orange", "green", "purple", "sky", "amber")
