"""Figures show what they are given: panels, limits, marks, small print, and the plotted table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import diagnostics
from diagnostics.metrics.curves import mean_curves
from diagnostics.metrics.loss_grid import loss_grids
from diagnostics.metrics.scores import curve
from diagnostics.paper import names
from diagnostics.plots import age
from diagnostics.plots.curves import curves
from diagnostics.plots.heatmaps import loss_heatmaps, shared_norm
from diagnostics.plots.layout import seeds_text, step_label
from diagnostics.plots.lines import lines
from diagnostics.plots.multiples import highlighted, separated
from diagnostics.plots.scores import score_against, score_bars
from tests.diagnostics.recorded import FIXTURE, VARIANTS


@pytest.fixture(scope="module")
def runs():
    return diagnostics.load(FIXTURE)


def drawn(figure):
    figure.canvas.draw_idle()
    figure.draw_without_rendering()
    return figure


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]


def test_heatmaps_share_one_colour_scale_and_put_the_oldest_on_top(runs):
    grids = loss_grids(runs.critic_loss)
    figure, table = loss_heatmaps(grids, runs.events, title="t")
    drawn(figure)
    panels = figure.axes[: len(VARIANTS)]
    limits = {(axes.collections[0].norm.vmin, axes.collections[0].norm.vmax) for axes in panels}
    assert len(limits) == 1
    for axes in panels:
        bottom, top = axes.get_ylim()
        assert bottom > top == 0
    assert titles(figure) == ["SAC (2 seeds)", "SAC with reset (2 seeds)", "FoG (2 seeds)"]
    assert set(table["label"]) == set(VARIANTS)
    assert (table["window_start"] < table["env_step"]).all()


def test_heatmaps_mark_the_resets_of_their_own_variant(runs):
    grids = loss_grids(runs.critic_loss)
    figure, _ = loss_heatmaps(grids, runs.events)
    lines = [
        [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"]
        for axes in figure.axes[:3]
    ]
    assert lines == [[], [200, 500], [200, 500]]


def test_lost_measurements_are_hatched(runs):
    loss = runs.critic_loss
    gap = (loss["env_step"] == 500) & (loss["window"] == 1)
    figure, table = loss_heatmaps(loss_grids(loss[~gap]), runs.events)
    hatched = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == 1
    assert table["mean"].isna().sum() == len(VARIANTS)


def test_one_spike_does_not_set_the_scale(runs):
    loss = runs.critic_loss.copy()
    loss.loc[loss.index[0], "mean"] = 1e12
    assert shared_norm(loss_grids(loss).values()).vmax < 1e6


def test_curves_draw_every_label_and_mark_resets(runs):
    table = mean_curves(curve(runs.evals), "return")
    figure, plotted = curves(table, runs.events, title="t")
    drawn(figure)
    axes = figure.axes[0]
    colours = {line.get_color() for line in axes.lines}
    assert {look.colour for look in lines(VARIANTS).values()} <= colours
    assert plotted is table
    assert "2 seeds" in figure.get_supxlabel()
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert entries == ["SAC", "SAC with reset", "FoG", "reset"]


def test_priming_is_marked_beside_resets(runs):
    primed = (
        runs.events[runs.events["event"] == "reset"].iloc[:1].assign(event="priming", env_step=40)
    )
    events = pd.concat([runs.events, primed])
    figure, _ = curves(mean_curves(curve(runs.evals), "return"), events)
    drawn(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()][-2:] == ["reset", "priming"]
    assert 40 in {line.get_xdata()[0] for line in figure.axes[0].lines}
    drawn(loss_heatmaps(loss_grids(runs.critic_loss), events)[0])


def test_one_seed_says_that_it_has_no_interval(runs):
    table = mean_curves(curve(runs.select(seed=0).evals), "return")
    figure, _ = curves(table)
    assert not figure.axes[0].collections
    assert "none where there is one seed" in figure.get_supxlabel()


def test_a_band_wider_than_the_lines_does_not_set_the_axis(runs):
    """Three seeds can have intervals many times as wide as all means are apart."""
    table = mean_curves(curve(runs.evals), "return")
    least, most = table["mean"].min(), table["mean"].max()
    wide = table.assign(low=table["mean"] - 1e6, high=table["mean"] + 1e6)
    for figure in (
        curves(wide)[0],
        highlighted(wide, runs.events, ylabel="", title="")[0],
        curves(wide.assign(low=-1e6), log=True)[0],
    ):
        low, high = figure.axes[0].get_ylim()
        assert low < least and most < high < 1e5
    narrow = table.assign(low=table["mean"] - 0.01, high=table["mean"] + 0.01)
    low, high = curves(narrow)[0].axes[0].get_ylim()
    assert low < narrow["low"].min() and high > narrow["high"].max()
    assert high - low < 1.2 * (most - least)


def test_highlighted_has_a_panel_for_each_label(runs):
    table = mean_curves(curve(runs.evals), "return")
    figure, _ = highlighted(table, runs.events, ylabel="return", title="")
    assert titles(figure) == ["SAC", "SAC with reset", "FoG"]


def test_each_variant_stands_beside_the_reference(runs):
    table = mean_curves(curve(runs.evals), "return")
    figure, _ = separated(table, runs.events, reference="sac", title="Returns")
    drawn(figure)
    assert titles(figure) == ["SAC with reset", "FoG"]
    looks = lines(VARIANTS)
    for axes, label in zip(figure.axes, ("sac-reset", "fog"), strict=True):
        curves_here = {line.get_color() for line in axes.lines if len(line.get_xdata()) > 2}
        assert curves_here == {looks["sac"].colour, looks[label].colour}
        assert len(axes.collections) == 2, "two bands, not more"
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    entries = figure.legends[0].get_texts()
    assert [text.get_text() for text in entries] == ["SAC", "SAC with reset", "FoG", "reset"]
    # Without the reference all share a panel, as before.
    assert len(separated(table, runs.events, reference="mine")[0].axes) == 1


def test_bars_say_where_a_cell_is_missing():
    row = {"source": "run", "tasks": 1, "seeds": 2, "low": 0.4, "high": 0.6}
    table = pd.DataFrame(
        [
            {"group": "A", "method": "fog", "score": 0.5, **row},
            {"group": "B", "method": "fog", **row, "score": np.nan, "low": np.nan, "high": np.nan},
        ]
    )
    figure, _ = score_bars(table, title="t", ylabel="score")
    assert [text.get_text() for text in figure.axes[0].texts] == ["missing"]


def test_score_against_cost_has_a_panel_for_each_cost():
    table = pd.DataFrame(
        {"label": ["sac", "fog"], "score": [1.0, 2.0], "low": 0.5, "high": 2.5, "seeds": [1, 3]}
    ).assign(updates=[100, 200])
    figure, _ = score_against(table, [("updates", "updates")], title="t", ylabel="score")
    assert figure.axes[0].get_xlabel() == "updates"
    assert "1 to 3 seeds" in figure.get_supxlabel()


def test_no_two_lines_look_alike():
    series = ["sac", "sac (scale 0.1)", "fog-uniform", "sac-utd1", "expanded-sac", "fog", "mine"]
    looks = lines(series)
    assert len({(look.colour, look.stroke) for look in looks.values()}) == len(series)
    assert looks["sac (scale 0.1)"].label == "SAC (scale 0.1)"
    assert looks["mine"].label == "mine"


def test_the_papers_order():
    assert names.ordered(["mine", "fog", "sac (scale 0.1)", "sac"]) == [
        "sac",
        "sac (scale 0.1)",
        "fog",
        "mine",
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (500, "500"), (1500, "1.5k"), (1e6, "1M"), (250_000, "250k")]
)
def test_step_labels(value, text):
    assert step_label(value) == text


def test_seeds_are_counted_in_words():
    assert [seeds_text(counts) for counts in ([1], [3, 3], [2, 3])] == [
        "1 seed",
        "3 seeds",
        "2 to 3 seeds",
    ]


def one_run(**columns):
    return pd.DataFrame(columns)


NO_EVENTS = pd.DataFrame(columns=["env_step", "event"])


def test_warm_start_draws_the_gap_of_every_measurement_and_the_last_curves():
    curve = [np.array([1.0, 0.5]), np.array([1.0, 0.3])]
    nothing = [np.full(2, np.nan)] * 2
    names = ("today", "fresh", "today_fitted", "fresh_fitted")
    table = one_run(
        fit=["change"] * 4,
        env_step=[100, 100, 200, 200],
        gap=[0.1, 0.3, np.nan, np.nan],
        gap_fitted=[0.0, 0.2, np.nan, np.nan],
        steps=[np.array([0, 9])] * 4,
        **dict.fromkeys(names, curve + nothing),
    )
    figure, drawn_table = age.warm_start(table, NO_EVENTS, title="t")
    gaps, targets, losses = drawn(figure).axes
    assert list(drawn_table["gap"].dropna()) == pytest.approx([0.2])
    assert "no window was large enough" in [text.get_text() for text in targets.texts]
    # The last measurement found too small a window, so the curves are those of the one before.
    assert [list(line.get_ydata()) for line in losses.lines] == [[1.0, 0.4]] * 4
    assert "step 100" in losses.get_title(loc="left") and "above 0" in gaps.get_ylabel()
    empty, _ = age.warm_start(table[2:], NO_EVENTS, title="t")
    assert "no window was large enough" in [text.get_text() for text in empty.axes[2].texts]


def test_off_policy_says_that_a_deterministic_policy_has_no_density():
    steps = np.repeat(np.arange(100, 1100, 100), 2)
    table = one_run(
        env_step=steps,
        window=np.tile([0, 1], 10),
        age=np.tile([150.0, 50.0], 10),
        log_prob_median=np.nan,
        distance=np.linspace(0, 1, 20),
    )
    figure, shown = age.off_policy(table, title="t")
    density, distance = drawn(figure).axes
    assert "deterministic" in density.texts[0].get_text()
    assert len(distance.lines) == 6 and set(shown["env_step"]) == {100, 300, 500, 600, 800, 1000}
    assert list(distance.lines[-1].get_xdata()) == [50.0, 150.0], "young data at the left"


def test_interference_shows_the_last_matrix_with_the_oldest_first():
    table = one_run(
        env_step=[100, 200, 200, 200, 200],
        window=[3, 3, 3, 4, 4],
        other=[3, 3, 4, 3, 4],
        age=0.0,
        other_age=0.0,
        cosine=[1.0, 1.0, -0.5, -0.5, 1.0],
    )
    ranks = one_run(
        env_step=[100, 200], windows=[1, 2], window_rank=[1.0, 1.8], samples=50, sample_rank=10.0
    )
    figure, shown = age.interference(table, ranks, NO_EVENTS, title="t")
    heat, lines = drawn(figure).axes[:2]
    assert heat.collections[0].get_array().tolist() == [[1.0, -0.5], [-0.5, 1.0]]
    bottom, top = heat.get_ylim()
    assert bottom > top and len(shown) == 4
    assert [list(line.get_ydata()) for line in lines.lines] == [[0.2, 0.2], [1.0, 0.9]]
    assert "3" in [tick.get_text() for tick in heat.get_yticklabels()]
