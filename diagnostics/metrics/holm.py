"""Several tests at once: Holm's correction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Holm's adjusted p-values: below 5 % for all with a chance of at most 5 % to err at all."""
    order = np.argsort(p)
    scaled = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return adjusted
