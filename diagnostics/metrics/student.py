"""Student's and Welch's intervals: few seeds deserve error bars that cover what they say.

A percentile bootstrap over three seeds never leaves their range, so what it calls 95 % covers far
less. Student's t does not have that fault. `scipy.special` and not `scipy.stats`, which takes a
second to import.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from diagnostics.metrics.statistics import CONFIDENCE, Interval

Values = NDArray[np.float64]


def quantile(degrees: ArrayLike, confidence: float = CONFIDENCE) -> Values:
    """How many standard errors half of the interval takes."""
    return np.asarray(stdtrit(degrees, (1 + confidence) / 2), np.float64)


def interval(estimate: float, squares: Values, degrees: Values) -> Interval:
    """A sum of independent means with its 95 % interval.

    Args:
        estimate: the sum.
        squares: the squared standard error that each mean brings to it.
        degrees: degrees of freedom of each.

    Returns:
        The ends are NaN where nothing is known about the width: a mean of one value, or no spread.
    """
    error, freedom = _error(squares, degrees)
    half = float(quantile(freedom)) * error
    return Interval(estimate, estimate - half, estimate + half)


def p_value(estimate: float, squares: Values, degrees: Values) -> float:
    """Of the two-sided test against zero that belongs to `interval`."""
    error, freedom = _error(squares, degrees)
    return 2 * float(stdtr(freedom, -abs(estimate) / error))


def _error(squares: Values, degrees: Values) -> tuple[float, float]:
    """Standard error of the sum, and its degrees of freedom (Welch and Satterthwaite)."""
    total = float(np.sum(squares))
    if not (total > 0 and np.all(degrees >= 1)):
        return float("nan"), float("nan")
    return float(np.sqrt(total)), float(total**2 / np.sum(squares**2 / degrees))
