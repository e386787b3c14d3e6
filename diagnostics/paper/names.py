"""What the paper calls the variants, in which order, and the colour that each has in figures."""

from __future__ import annotations

import re
from collections.abc import Iterable

from diagnostics.paper.methods import PREFIX, method

# In the order of the paper; the colour follows the sampler and the growth, not the backbone.
_VARIANTS: dict[str, tuple[str, str]] = {
    "sac": ("SAC", "blue"),
    "sac-reset": ("SAC with reset", "purple"),
    "per-sac": ("PER-SAC", "green"),
    "balanced-sac": ("Balanced SAC", "amber"),
    "expanded-sac": ("Expanded SAC", "orange"),
    "fog": ("FoG", "orange"),
    "fog-uniform": ("FoG, uniform replay", "blue"),
    "fog-per": ("FoG, PER", "green"),
    "fog-cuer": ("FoG, CUER", "purple"),
    "fog-fixed2": ("FoG, fixed 2 blocks", "sky"),
    "fog-fixed4": ("FoG, fixed 4 blocks", "grey"),
    "obac-scaled": ("OBAC, scaled", "grey"),
    "fog-sac": ("FoG-SAC", "amber"),
    "sac-utd1": ("SAC, replay ratio 1", "blue"),
    "sac-utd1-decay": ("SAC + ER decay, replay ratio 1", "orange"),
    "sac-utd1-50k": ("SAC, buffer of 50k", "purple"),
    "sac-utd1-100k": ("SAC, buffer of 100k", "green"),
    "sac-utd1-250k": ("SAC, buffer of 250k", "sky"),
    "sac-utd1-500k": ("SAC, buffer of 500k", "grey"),
    "fog-utd2": ("FoG, no resets, replay ratio 2", "amber"),
    "fog-sac-utd2": ("FoG-SAC, replay ratio 2", "green"),
    "fog-ne": ("FoG from an MLP, no resets, replay ratio 2", "purple"),
    "bro": ("BRO", "green"),
    "bro-fast": ("BRO, replay ratio 2", "green"),
    "bro-deep": ("BRO, 10 blocks, no resets", "green"),
    "simba": ("SimBa", "blue"),
    "simba-deep": ("SimBa, 10 blocks", "blue"),
    "ne": ("NE (small)", "grey"),
    "ne-large": ("NE (large)", "sky"),
    "fog-bro": ("FoG on BRO", "amber"),
    "fog-swd": ("FoG, sample weight decay", "sky"),
    "fog-injection": ("FoG, plasticity injection", "purple"),
    "plain-sac": ("plain SAC", "blue"),
    "plain-sac-reset": ("plain SAC, resets", "sky"),
    "plain-sac-early-reset": ("plain SAC, one early reset", "purple"),
    "plain-sac-decay": ("plain SAC, ER decay", "amber"),
    "plain-sac-reset-decay": ("plain SAC, resets and ER decay", "green"),
    "plain-sac-grow": ("plain SAC, growing", "orange"),
    "norm-sac": ("LayerNorm SAC", "purple"),
    "norm-sac-reset": ("LayerNorm SAC, resets", "sky"),
    "norm-sac-early-reset": ("LayerNorm SAC, one early reset", "blue"),
    "norm-sac-decay": ("LayerNorm SAC, ER decay", "amber"),
    "norm-sac-reset-decay": ("LayerNorm SAC, resets and ER decay", "green"),
    "norm-sac-grow": ("LayerNorm SAC, growing", "orange"),
}


def variant_of(series: str) -> str:
    """The variant in a label such as `sac (scale 0.02)`."""
    return series.partition(" (")[0]


def label(series: str) -> str:
    """The paper's name; a variant the paper does not know keeps its own."""
    variant = variant_of(series)
    name = _VARIANTS.get(variant, (variant, ""))[0]
    if variant.startswith(PREFIX):
        # Published runs are all of the paper's size: only those of ours need to say theirs.
        return f"{method(variant.removeprefix(PREFIX)).label}, published"
    return name + series[len(variant) :]


def ordered(series: Iterable[str]) -> list[str]:
    """The paper's order, others after it by name; numbers in names by their size."""
    rank = {name: k for k, name in enumerate(_VARIANTS)}
    return sorted(
        set(series), key=lambda name: (rank.get(variant_of(name), len(rank)), _by_size(name))
    )


def _by_size(name: str) -> list[tuple[float, str]]:
    """3000 comes before 10000, which as text it does not; text and numbers alternate."""
    parts = re.split(r"([0-9]+(?:\.[0-9]+)?)", name)
    return [(float(part), part) if k % 2 else (0.0, part) for k, part in enumerate(parts)]


def colour(series: str) -> str | None:
    """The name of the variant's colour; None for a variant the paper does not know."""
    known = _VARIANTS.get(variant_of(series))
    return None if known is None else known[1]
