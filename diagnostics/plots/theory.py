"""Figures of the two theorems and of sample counts. Each returns the figure and what it plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import digamma

from diagnostics import theory
from diagnostics.plots.style import COLOURS, CYCLE, SAMPLER_COLOURS, new_figure, styled

Plot = tuple[Figure, pd.DataFrame]

_POINTS = 400
_COUNT_LABEL = r"expected draws of transition $t$, $E[n_t]/\beta$"
_FIRST_LABEL = r"expected draws of the first transition, $E[n_1]/\beta$"


def theorem_1_counts(n: int) -> Plot:
    """Expected count of every transition under uniform replay, between the paper's bounds."""
    arrival = _log_spaced(n)
    exact = theory.expected_counts(n)[arrival - 1]
    lower, upper = (bound[arrival - 1] for bound in theory.theorem_1_bounds(n))
    table = pd.DataFrame({"transition": arrival, "exact": exact, "lower": lower, "upper": upper})
    with styled():
        figure, (axes,) = new_figure()
        axes.fill_between(
            arrival,
            lower,
            upper,
            color=COLOURS["sky"],
            alpha=0.35,
            lw=0,
            label="between the paper's bounds",
        )
        axes.plot(arrival, exact, color=COLOURS["black"], label=r"exact, $H_N - H_{t-1}$")
        axes.axhline(0.0, color=COLOURS["grey"], lw=0.8)
        axes.set(xscale="log", xlabel="transition $t$, in order of arrival", ylabel=_COUNT_LABEL)
        axes.set_title(f"Uniform replay favours the old (N = {n:,})")
        axes.legend(loc="upper right")
    return figure, table


def theorem_1_growth(n: int) -> Plot:
    """How the first transition's expected count grows with the number of additions."""
    additions = _log_spaced(n)
    exact = theory.first_counts(n)[additions - 1]
    logs = np.log(additions)
    table = pd.DataFrame(
        {"additions": additions, "exact": exact, "lower": logs + 1 / additions, "upper": logs + 1}
    )
    with styled():
        figure, (axes,) = new_figure()
        axes.fill_between(
            additions,
            table["lower"],
            table["upper"],
            color=COLOURS["sky"],
            alpha=0.35,
            lw=0,
            label=r"$\ln N + 1/N$ to $\ln N + 1$",
        )
        axes.plot(additions, exact, color=COLOURS["black"], label="exact, $H_N$")
        axes.set(xscale="log", xlabel="transitions added, $N$", ylabel=_FIRST_LABEL)
        axes.set_title("The first transition's count grows without end")
        axes.legend(loc="upper left")
    return figure, table


def theorem_2_counts(n: int, epsilons: Sequence[float]) -> Plot:
    """Expected count of every transition under decay without a floor, beside uniform replay."""
    arrival = _log_spaced(n)
    laws: list[float | None] = [None, *epsilons]
    rows = []
    with styled():
        figure, (axes,) = new_figure()
        for k, epsilon in enumerate(laws):
            counts = theory.expected_counts(n, epsilon)[arrival - 1]
            label = "uniform" if epsilon is None else rf"$\epsilon$ = {_power(epsilon)}, $\tau$ = 0"
            axes.plot(arrival, counts, color=COLOURS[CYCLE[k % len(CYCLE)]], label=label)
            series = "uniform" if epsilon is None else f"epsilon={epsilon:g} tau=0"
            rows.append(_rows(series, "transition", arrival, counts))
        axes.set(xscale="log", xlabel="transition $t$, in order of arrival", ylabel=_COUNT_LABEL)
        axes.set_ylim(bottom=0)
        axes.set_title(f"Decay without a floor caps the count (N = {n:,})")
        axes.legend(loc="upper right")
    return figure, pd.concat(rows, ignore_index=True)


def theorem_2_bound(epsilons: NDArray[np.float64]) -> Plot:
    """The paper's bound beside the count it bounds."""
    exact = np.array([theory.first_count_limit(float(epsilon)) for epsilon in epsilons])
    table = pd.DataFrame(
        {
            "epsilon": epsilons,
            "paper_bound": theory.theorem_2_bound(epsilons),
            "exact": exact,
            "sharp_limit": theory.theorem_2_sharp_limit(epsilons),
        }
    )
    with styled():
        figure, (axes,) = new_figure()
        axes.plot(
            epsilons,
            table["paper_bound"],
            color=COLOURS["orange"],
            label=r"the paper's bound, $1/\epsilon$",
        )
        axes.plot(
            epsilons, exact, color=COLOURS["black"], label=r"exact, $N \to \infty$, $\tau = 0$"
        )
        axes.plot(
            epsilons,
            table["sharp_limit"],
            "--",
            color=COLOURS["sky"],
            label=r"$\ln(1/\epsilon) + \gamma$",
        )
        axes.set(xscale="log", yscale="log", xlabel=r"decay rate $\epsilon$", ylabel=_FIRST_LABEL)
        axes.set_title("The paper's bound is correct but loose")
        axes.legend(loc="upper right")
    return figure, table


def theorem_2_floor(epsilon: float, taus: Sequence[float], n_max: float) -> Plot:
    """The first transition's count against N: bounded without a floor, logarithmic with one."""
    additions = np.unique(np.logspace(0, np.log10(n_max), 160).round()).astype(np.int64)
    floors = sorted(taus, reverse=True)
    rows: list[pd.DataFrame] = []
    with styled():
        figure, (axes,) = new_figure(width=7.2, height=4.4)

        def draw(series: str, counts: NDArray[np.float64], colour: str, label: str) -> None:
            axes.plot(additions, counts, color=COLOURS[colour], label=label)
            rows.append(_rows(series, "additions", additions, counts))

        draw(
            "uniform", np.asarray(digamma(additions + 1.0)) + theory.EULER_GAMMA, "blue", "uniform"
        )
        for tau, colour in zip(floors, ("orange", "green", "purple", "amber"), strict=False):
            counts = [theory.first_count_with_floor(int(m), epsilon, tau) for m in additions]
            draw(f"tau={tau:g}", np.array(counts), colour, rf"$\tau$ = {tau:g}")
        reach = int(min(n_max, 40.0 / epsilon))
        without = theory.first_counts(reach, epsilon)[np.minimum(additions, reach) - 1]
        draw("tau=0", without, "black", r"$\tau$ = 0 (Theorem 2)")
        for k, tau in enumerate(floors):
            late = additions[additions > 1.0 / (epsilon * tau)]
            asymptote = theory.first_count_floor_asymptote(late, tau)
            label = r"$\ln N + \gamma + \ln\tau$" if k == 0 else None
            axes.plot(late, asymptote, ":", color=COLOURS["black"], lw=1.4, label=label)
        axes.set(xscale="log", xlabel="transitions added, $N$", ylabel=_FIRST_LABEL)
        axes.set_ylim(bottom=0)
        axes.set_title(rf"With a floor the growth comes back ($\epsilon$ = {_power(epsilon)})")
        axes.legend(loc="upper left")
    return figure, pd.concat(rows, ignore_index=True)


def sample_counts(
    simulated: Mapping[str, NDArray[np.float64]],
    expected: Mapping[str, NDArray[np.float64]],
    bins: int,
    title: str,
) -> Plot:
    """Counts in units of beta against order of arrival: dots observed, pale lines expected.

    Args:
        simulated: Per sampler, the observed count of every transition divided by beta.
        expected: Per sampler, the exact expectation, where there is one.
        bins: Dots per sampler; each is the mean over as many neighbouring transitions.
        title: Headline.
    """
    rows = []
    with styled():
        figure, (axes,) = new_figure(width=7.2, height=4.4)
        for name, counts in expected.items():
            centres, means = _binned(counts, bins)
            # Wide and pale under the dots of the same colour: where both agree, both are seen.
            axes.plot(
                centres,
                means,
                color=SAMPLER_COLOURS[name],
                lw=5,
                alpha=0.35,
                solid_capstyle="round",
                label=f"{name}, exact expectation",
            )
            rows.append(_rows(f"{name} expected", "transition", centres, means))
        for name, counts in simulated.items():
            centres, means = _binned(counts, bins)
            axes.plot(
                centres,
                means,
                "o",
                ms=3.5,
                mew=0,
                color=SAMPLER_COLOURS[name],
                label=f"{name}, simulated",
            )
            rows.append(_rows(f"{name} simulated", "transition", centres, means))
        _finish_counts(axes, title)
    return figure, pd.concat(rows, ignore_index=True)


def _finish_counts(axes: Axes, title: str) -> None:
    axes.set(
        xlabel="transition, in order of arrival",
        ylabel=r"draws per transition, in units of $\beta$",
    )
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_title(title)
    axes.legend(loc="upper right")


def _binned(
    counts: NDArray[np.float64], bins: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centres and means of equal stretches; bins that differ by one transition at most."""
    edges = np.linspace(0, len(counts), min(bins, len(counts)) + 1).astype(int)
    widths = np.diff(edges)
    return (edges[:-1] + edges[1:] + 1) / 2, np.add.reduceat(counts, edges[:-1]) / widths


def _log_spaced(n: int) -> NDArray[np.int64]:
    return np.unique(np.logspace(0, np.log10(n), _POINTS).round().astype(np.int64).clip(1, n))


def _rows(series: str, axis: str, x: NDArray[np.generic], y: NDArray[np.float64]) -> pd.DataFrame:
    return pd.DataFrame({"series": series, axis: x, "draws_per_beta": y})


def _power(value: float) -> str:
    mantissa, exponent = f"{value:.0e}".split("e")
    power = rf"10^{{{int(exponent)}}}"
    return f"${power}$" if mantissa == "1" else rf"${mantissa} \cdot {power}$"
