"""How many seeds would decide a contrast: power of the test behind `fog claims`.

A contrast is decided if its 95 % interval over seeds excludes zero. Its power at an effect is the
chance that the whole interval lies on the effect's side. It is computed in two ways: from the
distribution of the test with the spread of the given runs, if returns are normal; and by
resampling seeds from these runs, shifted to the effect, which keeps the shape of their
distribution. If both variants have the same seeds, and so the same warm-up, the paired test is
given too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import chdtri, ndtr, stdtrit

from diagnostics.metrics.student import CONFIDENCE

Floats = NDArray[np.float64]

TARGET = 0.8
"""The target power."""
MOST_SEEDS = 1000
_RESAMPLES = 4000
_FEW = 30
"""Fewer seeds than these do not know their own spread well."""
_SLICES = 40
"""Of equal probability, for each spread that few seeds may show."""


class Needed(NamedTuple):
    """Seeds per variant for the target power; None beyond `MOST_SEEDS`, or where it is unknown."""

    welch: int | None
    bootstrap: int | None
    paired: int | None


def welch_power(effect: float, spreads: tuple[float, ...], seeds: int) -> float:
    """Power with `seeds` of each variant, of normal returns.

    Args:
        effect: the true difference of the means, or the true mean of a single variant.
        spreads: standard deviation over seeds of each variant: one, or two that are compared.
        seeds: runs of each.
    """
    if seeds < 2:
        return 0.0
    squares = np.array(spreads) ** 2 / seeds
    total = float(squares.sum())
    if total == 0:
        return 1.0 if effect else 0.0
    if len(spreads) == 2 and seeds < _FEW:
        return _power_of_few(abs(effect), squares, seeds)
    degrees = total**2 / float((squares**2 / (seeds - 1)).sum())
    critical = stats.t.ppf((1 + CONFIDENCE) / 2, degrees)
    return float(stats.nct.sf(critical, degrees, abs(effect) / np.sqrt(total)))


def _power_of_few(effect: float, squares: Floats, seeds: int) -> float:
    """Welch's degrees of freedom come from the spreads that the seeds show: average over these.

    With the degrees of the true spreads three seeds seem to have 80 % power where they have 70 %.
    """
    chances = (np.arange(_SLICES) + 0.5) / _SLICES
    seen = chdtri(seeds - 1, chances) / (seeds - 1)
    one, other = squares[0] * seen[:, None], squares[1] * seen
    error = one + other
    critical = stdtrit(error**2 * (seeds - 1) / (one**2 + other**2), (1 + CONFIDENCE) / 2)
    beyond = (effect - critical * np.sqrt(error)) / np.sqrt(squares.sum())
    return float(ndtr(beyond).mean())


def bootstrap_power(
    effect: float,
    samples: tuple[Floats, ...],
    seeds: int,
    rng: np.random.Generator,
    resamples: int = _RESAMPLES,
) -> float:
    """The same chance, with seeds resampled from the given runs instead of a normal distribution.

    Drawing n of n runs understates their variance by (n - 1) / n, which is corrected here.
    """
    if seeds < 2 or min(map(len, samples)) < 2:
        return 0.0
    means, squares = [], []
    for sample in samples:
        size = len(sample)
        residuals = (sample - sample.mean()) * np.sqrt(size / (size - 1))
        drawn = residuals[rng.integers(0, size, (resamples, seeds))]
        means.append(drawn.mean(axis=1))
        squares.append(drawn.var(axis=1, ddof=1) / seeds)
    error = np.sum(squares, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = error**2 / np.sum([square**2 / (seeds - 1) for square in squares], axis=0)
        critical = stats.t.ppf((1 + CONFIDENCE) / 2, degrees)
    # The tails of a skewed distribution stay on their side of a negative effect.
    noise = means[0] - (means[1] if len(means) == 2 else 0.0)
    estimate = abs(effect) + np.sign(effect) * noise
    # Draws without spread have no interval, and decide nothing.
    return float(np.mean(np.nan_to_num(estimate - critical * np.sqrt(error), nan=-1.0) > 0))


def seeds_needed(
    effect: float,
    samples: tuple[Floats, ...],
    *,
    paired: bool = False,
    target: float = TARGET,
    seed: int = 0,
) -> Needed:
    """Seeds of each variant that decide a contrast with the target power.

    Args:
        effect: the true difference, in the units of the samples.
        samples: numbers of the given runs, one array per variant; for `paired` in the order of
            their common seeds.
        paired: whether entry i of both samples comes from the same seed.
        target: the power to reach.
        seed: of the bootstrap.
    """
    if min(map(len, samples)) < 2 or not np.isfinite(effect) or effect == 0:
        return Needed(None, None, None)

    def drawn(seeds: int) -> float:
        return bootstrap_power(effect, samples, seeds, np.random.default_rng(seed))

    both = None
    if paired and len(samples) == 2 and len(samples[0]) == len(samples[1]):
        spread = (float((samples[0] - samples[1]).std(ddof=1)),)
        both = _smallest(lambda seeds: welch_power(effect, spread, seeds), target)
    return Needed(welch_seeds(effect, samples, target), _smallest(drawn, target), both)


def welch_seeds(effect: float, samples: Sequence[Floats], target: float = TARGET) -> int | None:
    """Seeds of each variant that reach the target power by Welch's test; None beyond `MOST_SEEDS`.

    Args:
        effect: the true difference, in the units of the samples.
        samples: numbers of the given runs, one array per variant, for their spread.
        target: the power to reach.
    """
    if min(map(len, samples)) < 2 or not np.isfinite(effect) or effect == 0:
        return None
    spreads = tuple(float(sample.std(ddof=1)) for sample in samples)
    return _smallest(lambda seeds: welch_power(effect, spreads, seeds), target)


def missing_hours(
    seeds: int | None, samples: Sequence[NDArray[np.float64]], each: Sequence[float]
) -> float | None:
    """Hours of training until each variant has that many seeds; None if nobody knows.

    Args:
        seeds: of each variant; None for more than anybody would train.
        samples: the numbers that there are, one array for each variant.
        each: hours of one run of each variant.
    """
    if seeds is None or not np.isfinite(each).all():
        return None
    pairs = zip(samples, each, strict=True)
    return float(sum(max(0, seeds - len(sample)) * hours for sample, hours in pairs))


def _smallest(power: Callable[[int], float], target: float) -> int | None:
    """The smallest number of seeds with the target power; power grows with seeds.

    Doubling before bisection: a thousand seeds cost a resampling test a thousand times one's work.
    """
    low, high = 1, 2
    while power(high) < target:
        if high == MOST_SEEDS:
            return None
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        if power(middle) >= target:
            high = middle
        else:
            low = middle
    return high
