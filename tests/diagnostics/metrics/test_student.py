"""Does an interval that is called 95 % cover 95 %? Measured, with returns of known mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from diagnostics.metrics import statistics, student

TRIALS = 40_000
SEEDS = (3, 5, 10, 20)
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]

# 186 pairs of a task and a published method with ten seeds or more (SimBa, BRO, XQC and others)
# have a median |sample skewness| of 0.75 at their last evaluation. Ten seeds of a normal law have
# one of 0.44, of this one 0.64: most seeds near the best, a tail of worse ones, skewness -1.14.
LAWS: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "left Gumbel": lambda rng, size: -rng.gumbel(size=size),
}
HARDER: dict[str, tuple[Draw, dict[int, float]]] = {
    "Beta(4, 1)": (
        lambda rng, size: rng.beta(4, 1, size=size),
        {3: 0.91, 5: 0.91, 10: 0.93, 20: 0.94},
    ),
    "exponential": (
        lambda rng, size: rng.exponential(size=size),
        {3: 0.88, 5: 0.88, 10: 0.90, 20: 0.92},
    ),
    "one in five fails": (
        lambda rng, size: np.where(
            rng.random(size) < 0.2, rng.normal(0.2, 0.1, size), rng.normal(0.9, 0.05, size)
        ),
        {3: 0.63, 5: 0.67, 10: 0.89, 20: 0.92},
    ),
}


def samples(draw: Draw, seeds: int) -> np.ndarray:
    return draw(np.random.default_rng(seeds), (TRIALS, seeds))


def truth(draw: Draw) -> np.ndarray:
    return draw(np.random.default_rng(0), (1, 4_000_000))[0]


def covered(values: np.ndarray, estimate: np.ndarray, true: float) -> float:
    half = student.half_width(values.std(axis=1, ddof=1), values.shape[1])
    return float(np.mean(np.abs(estimate - true) <= half))


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("law", LAWS)
def test_the_interval_of_a_mean_covers_what_it_says(law: str, seeds: int) -> None:
    values = samples(LAWS[law], seeds)
    assert 0.93 <= covered(values, values.mean(axis=1), truth(LAWS[law]).mean()) <= 0.97
    # What was simulated is what is printed.
    found = student.mean(values[0])
    half = student.half_width(values[0].std(ddof=1), seeds)
    assert found.high - found.estimate == pytest.approx(float(half))


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("law", LAWS)
def test_the_interval_of_an_interquartile_mean_covers_what_it_says(law: str, seeds: int) -> None:
    values = samples(LAWS[law], seeds)
    middle = np.sort(truth(LAWS[law]))[1_000_000:3_000_000].mean()
    estimates = statistics.iqm(values[:, :, None])
    assert 0.93 <= covered(values, estimates, middle) <= 0.97
    found = student.iqm(values[0])
    assert found.estimate == estimates[0]
    half = float(student.half_width(values[0].std(ddof=1), seeds))
    assert found.high - found.estimate == pytest.approx(half)


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("law", LAWS)
def test_the_interval_of_a_difference_covers_what_it_says(law: str, seeds: int) -> None:
    """Welch's: the second variant has three times the spread and two seeds more."""
    rng = np.random.default_rng(seeds)
    true = -2 * truth(LAWS[law]).mean()
    one = LAWS[law](rng, (4000, seeds))
    other = 3 * LAWS[law](rng, (4000, seeds + 2))
    found = [student.difference(a, b) for a, b in zip(one, other, strict=True)]
    assert 0.93 <= np.mean([low <= true <= high for _, low, high in found]) <= 0.97


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("law", HARDER)
def test_what_docs_say_about_returns_that_are_more_skewed(law: str, seeds: int) -> None:
    """It falls short there: three seeds that all succeeded do not know of the one that fails."""
    draw, documented = HARDER[law]
    values = samples(draw, seeds)
    measured = covered(values, values.mean(axis=1), truth(draw).mean())
    assert measured == pytest.approx(documented[seeds], abs=0.01)


def test_a_bootstrap_covers_less_even_with_twenty_seeds() -> None:
    """Why there is none."""
    rng = np.random.default_rng(0)
    for seeds, most in ((3, 0.80), (10, 0.92), (20, 0.93)):
        values = rng.normal(size=(1000, seeds))
        draws = rng.integers(0, seeds, (1000, 500, seeds))
        means = np.take_along_axis(values[:, None, :], draws, axis=2).mean(axis=2)
        low, high = np.quantile(means, [0.025, 0.975], axis=1)
        assert np.mean((low <= 0) & (high >= 0)) < most


def test_one_seed_and_equal_seeds_have_no_interval() -> None:
    for values in ([3.0], [3.0, 3.0], [3.0, np.nan]):
        for found in (student.mean(values), student.iqm(values)):
            assert found.estimate == 3.0
            assert np.isnan([found.low, found.high]).all()
    assert np.isnan(student.mean([])).all()
    assert np.isnan(student.half_width([0.0, 1.0], [3, 1])).all()


def test_no_other_place_computes_an_interval() -> None:
    """Whoever needs one asks `diagnostics.metrics.student`; `power` simulates its test,
    and the areas and rank correlations of the calibration are bootstrapped."""
    import re
    from pathlib import Path

    import diagnostics

    folder = Path(diagnostics.__file__).parent
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(r"stdtrit|t\.ppf|0\.975|multinomial|[Bb]ootstrap interval", path.read_text())
    }
    assert found == {"metrics/student.py", "metrics/power.py", "diagnosis/calibration.py"}
