"""Figures can be read: text inside the figure, labels apart, legends in the colours of the data."""

from __future__ import annotations

import json
import runpy
import sys
from itertools import combinations, pairwise
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.colors import to_rgba
from matplotlib.legend import Legend
from matplotlib.text import Text

import diagnostics
from diagnostics.diagnosis.calibration import Calibration
from diagnostics.diagnosis.signs import SIGNS
from diagnostics.metrics.curves import mean_curves
from diagnostics.metrics.loss_grid import loss_grids
from diagnostics.paper import names
from diagnostics.plots import claims, theory
from diagnostics.plots.calibration import areas, dose_response
from diagnostics.plots.card import run_inside, run_overview
from diagnostics.plots.counts import observed_counts
from diagnostics.plots.curves import curves, index_curves
from diagnostics.plots.heatmaps import log_ticks, loss_heatmaps, tick_text
from diagnostics.plots.layout import band_limits
from diagnostics.plots.lines import lines
from diagnostics.plots.scores import score_against, score_bars
from diagnostics.studies import universality
from diagnostics.studies.page import Page
from fog.algorithms.losses import critic_loss
from tests.diagnostics.recorded import FIXTURE

ROOT = Path(__file__).parents[3]
LONG = ["sac", "sac-reset", "per-sac", "balanced-sac", "expanded-sac", "fog", "fog-uniform",
        "fog-cuer (cuer quota step)", "fog-fixed2", "fog-fixed4"]  # fmt: skip
NO_EVENTS = pd.DataFrame(columns=["env_step", "event"])


@pytest.fixture(scope="module")
def runs():
    return diagnostics.load(FIXTURE)


def laid_out(figure):
    figure.draw_without_rendering()
    return figure


def ticks(axis):
    """Labels of the ticks inside the view; matplotlib keeps some beyond it that are not drawn."""
    low, high = sorted(axis.get_view_interval())
    room = 1e-6 * (high - low)
    return [
        tick.label1
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        if low - room <= tick.get_loc() <= high + room
        and tick.label1.get_visible()
        and tick.label1.get_text()
    ]


def outside(figure):
    """Texts that lie beyond the edge of the figure, by more than a pixel."""
    laid_out(figure)
    axes_of_ticks = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    kept = {id(label) for axis in axes_of_ticks for label in ticks(axis)}
    unseen = {
        id(tick.label1)
        for axis in axes_of_ticks
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
    } - kept
    room = figure.bbox.padded(1)
    found = []
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and id(text) not in unseen:
            box = text.get_window_extent()
            if not (room.contains(box.x0, box.y0) and room.contains(box.x1, box.y1)):
                found.append(text.get_text())
    return found


def colliding(figure):
    """Tick labels of one axis, or titles of panels, that overlap."""
    laid_out(figure)
    groups = [ticks(axis) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    groups.append([axes._left_title for axes in figure.axes if axes.get_title(loc="left")])
    return [
        (one.get_text(), other.get_text())
        for group in groups
        for one, other in combinations(group, 2)
        if one.get_window_extent().overlaps(other.get_window_extent())
    ]


def legend_colours(figure):
    return {
        text.get_text(): to_rgba(handle.get_color())
        for legend in figure.findobj(Legend)
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True)
    }


def bars(methods, groups=("DMC-Easy",)):
    return pd.DataFrame(
        [
            {"group": group, "method": name, "source": source, "score": 0.5, "low": 0.4,
             "high": 0.6, "tasks": 1, "seeds": 3}
            for group in groups
            for name, source in methods
        ]
    )  # fmt: skip


METHODS = [(name, "paper") for name in ("FoG", "TD-MPC2", "SimBa", "BRO")] + [
    (name, "run") for name in LONG
]


def test_a_long_legend_and_title_stay_inside():
    title = (
        "Normalised score (best before T, 25k grid / a constant of the suite) and then some more"
    )
    figure, _ = score_bars(
        bars(METHODS), title=title, ylabel="s", apart="this project\n(scale 0.1)"
    )
    assert outside(figure) == []
    assert colliding(figure) == []


def test_miniatures_are_kept_apart_from_the_papers_bars():
    together, _ = score_bars(bars(METHODS), title="t", ylabel="s")
    assert len(together.axes) == 1
    figure, _ = score_bars(bars(METHODS), title="t", ylabel="s", apart="this project\n(scale 0.1)")
    paper, own = figure.axes
    assert (len(paper.patches), len(own.patches)) == (4, len(LONG))
    assert "full length" in paper.get_title(loc="left") and "0.1" in own.get_title(loc="left")
    assert paper.get_ylim() == own.get_ylim()


def test_groups_of_all_suites_do_not_collide():
    groups = ("MuJoCo", "DMC-Easy", "DMC-Medium", "DMC-Hard", "Meta-World", "HumanoidBench")
    figure, _ = score_bars(bars(METHODS, groups), title="t", ylabel="s", apart="this project")
    assert outside(figure) == []
    assert colliding(figure) == []


def costs():
    scores = np.linspace(300, 500, len(LONG))
    return pd.DataFrame(
        {"label": LONG, "score": scores, "low": scores - 60, "high": scores + 90, "seeds": 3}
    ).assign(updates=116_000, parameter_updates=np.linspace(8e8, 5.5e9, len(LONG)))


def test_marks_of_equal_cost_stand_side_by_side():
    table = costs()
    columns = [("updates", "updates"), ("parameter_updates", "trained")]
    figure, _ = score_against(table, columns, title="t", ylabel="score")
    assert colliding(figure) == []
    assert outside(figure) == []
    panel = figure.axes[0]
    marks = [line for line in panel.lines if line.get_marker() not in ("None", "")]
    places = [line.get_transform().transform(line.get_xydata())[0] for line in marks]
    gaps = np.diff(sorted(place[0] for place in places))
    assert (gaps > 5).all(), "equal costs, but no mark hides another"
    assert all(panel.get_window_extent().contains(*place) for place in places)
    assert panel.get_xlim()[0] == 0
    assert all(label.get_text().endswith("G") for label in ticks(figure.axes[1].xaxis)[1:])


def test_a_title_names_only_what_was_trained(runs):
    chosen = runs.select(variant=universality.FOG_ON_SAC)
    page = Page(chosen, Path(), universality.FOG_ON_SAC, ("cartpole-swingup",), "runs")
    figure, _ = universality.fog_on_sac(page)
    assert figure.legends[0].get_title().get_text() == "SAC, FoG (no run of FoG-SAC)"


def overview(**columns):
    steps = np.arange(0, 1000, 100)
    train = pd.DataFrame({"env_step": steps, "critic_loss": 0.3, "q": 5.0, "temperature": 0.2,
                          "depth": 1, "updates_per_second": 300.0})  # fmt: skip
    events = pd.DataFrame({"env_step": [450], "event": ["expansion"], "depth": [2]})
    evals = pd.DataFrame({"env_step": steps, "return": np.linspace(0, 1, 10)})
    return run_overview(evals, train.assign(**columns), events, title="t")


def test_a_constant_looks_constant():
    figure, _ = overview()
    laid_out(figure)
    for axes in figure.axes[1:]:
        low, high = axes.get_ylim()
        assert high - low >= 0.09 * high, axes.get_ylabel()
    blocks = [label.get_text() for label in ticks(figure.axes[4].yaxis)]
    assert blocks == ["0", "1", "2"], "blocks are whole"


def test_depth_jumps_at_the_expansion_and_not_before():
    figure, table = overview(depth=[1] * 5 + [2] * 5)
    depth = table[table["quantity"] == "depth"]
    assert depth.loc[depth["value"] == 2, "env_step"].min() == 450
    line = figure.axes[4].lines[0]
    assert line.get_drawstyle() == "steps-post"


def test_shares_have_an_axis_of_shares_and_numbers_are_plain():
    rows = [("positive", "online", 0.5), ("disagreement", "newest window", 0.2),
            ("disagreement", "oldest window", 0.6)]  # fmt: skip
    table = pd.DataFrame(
        [
            {"quantity": quantity, "line": line, "env_step": step, "value": value}
            for quantity, line, value in rows
            for step in (100, 200)
        ]
    )
    figure, _ = run_inside(table, NO_EVENTS, title="t")
    laid_out(figure)
    assert figure.axes[1].get_ylim() == (0, 1)
    numbers = [label.get_text() for label in ticks(figure.axes[5].yaxis)]
    assert "0.2" in numbers and not any("e" in number for number in numbers)


def test_marks_of_a_heatmap_have_the_colour_of_their_legend(runs):
    figure, _ = loss_heatmaps(loss_grids(runs.critic_loss), runs.events)
    laid_out(figure)
    told = legend_colours(figure)
    lines_on_map = [line for axes in figure.axes[:3] for line in axes.lines]
    resets = [line for line in lines_on_map if line.get_linestyle() == "--"]
    expansions = [line for line in lines_on_map if line.get_marker() == "v"]
    assert resets and {to_rgba(line.get_color()) for line in resets} == {told["reset"]}
    assert expansions and {to_rgba(line.get_color()) for line in expansions} == {told["expansion"]}
    assert all(line.get_markersize() >= 6 for line in expansions)


@pytest.mark.parametrize(("low", "high"), [(1.1, 5.3), (0.003, 0.6), (1e-6, 1e4), (2.0, 2.2)])
def test_a_colour_bar_has_at_least_five_ticks(low, high):
    found = log_ticks(low, high)
    assert len(found) >= 5 and found == sorted(found)
    assert low * 0.99 <= found[0] and found[-1] <= high * 1.01


def test_the_index_has_a_legend_in_the_colours_of_its_lines():
    labels = LONG[:5]
    steps = [100, 200]
    table = pd.DataFrame(
        [
            {"task": "t", "label": label, "env_step": step, "mean": 0.1, "low": 0.0, "high": 0.2,
             "seeds": 3}
            for label in labels
            for step in steps
        ]
    )  # fmt: skip
    overall = pd.DataFrame(
        {"label": labels, "index_mean": 0.1, "low": 0.0, "high": 0.2, "seeds": 3}
    )
    figure, _ = index_curves(table, overall, NO_EVENTS, title="t")
    laid_out(figure)
    told = legend_colours(figure)
    for look in lines(labels).values():
        assert told[look.label] == to_rgba(look.colour)
    assert not figure.axes[0].collections, "five bands would merge"
    assert outside(figure) == []


def test_the_five_sac_variants_have_five_hues():
    colours = [look.colour for look in lines(LONG[:5]).values()]
    assert len(set(colours)) == 5
    blues = [colour for colour in colours if to_rgba(colour)[2] > 1.3 * max(to_rgba(colour)[:2])]
    assert len(blues) == 1


def counts(labels, tops):
    return pd.DataFrame(
        [
            {"label": label, "transition": float(place), "observed": top / (1 + place),
             "expected": top / (1 + place), "seeds": 3}
            for label, top in zip(labels, tops, strict=True)
            for place in range(20)
        ]
    )  # fmt: skip


def test_counts_share_axes_and_dots_lie_on_top():
    figure, _ = observed_counts(counts(["fog", "fog-per", "fog-cuer", "fog-uniform"], [3, 3, 1, 4]),
                                title="t")  # fmt: skip
    laid_out(figure)
    assert len({(axes.get_xlim(), axes.get_ylim()) for axes in figure.axes}) == 1
    told = legend_colours(figure)
    for axes in figure.axes:
        expected, observed = axes.lines
        assert observed.get_zorder() > expected.get_zorder()
        assert expected.get_linewidth() > observed.get_markersize()
        assert to_rgba(observed.get_color()) == told["observed"]
        assert to_rgba(expected.get_color()) == told["exact expectation"]


def test_expected_counts_have_the_colour_of_their_sampler():
    values = np.linspace(3, 0, 50)
    figure, _ = theory.sample_counts(
        {"uniform": values, "decay": values[::-1]}, {"uniform": values, "decay": values}, 10, "t"
    )
    laid_out(figure)
    by_name = {line.get_label(): line.get_color() for line in figure.axes[0].lines}
    for name in ("uniform", "decay"):
        assert by_name[f"{name}, exact expectation"] == by_name[f"{name}, simulated"]
    assert by_name["uniform, exact expectation"] != by_name["decay, exact expectation"]


def test_claims_explain_their_unit_and_give_each_contrast_one_line():
    rows = [
        {"claim": f"claim {k // 4}", "what": "loss", "sides": f"sac > variant {k}", "task": task,
         "low": -0.5, "high": 1.0 + k, "ratio": False, "counts": True, "verdict": "inconclusive",
         "seeds": 3}
        for k in range(12)
        for task in ("HalfCheetah-v4", "cartpole-swingup")
    ]  # fmt: skip
    figure, drawn = claims.claims_forest(pd.DataFrame(rows), "the paper")
    laid_out(figure)
    (axes,) = figure.axes
    assert len(drawn) == 24 and len(axes.get_yticks()) == 12
    assert "half the width" in figure.get_supxlabel().replace("\n", " ")
    assert figure.get_figheight() < 0.25 * len(drawn) + 2
    assert outside(figure) == []
    assert {"HalfCheetah-v4", "cartpole-swingup"} <= set(legend_colours(figure))


def test_bands_of_few_seeds_do_not_hide_the_means():
    rows = pd.DataFrame({"mean": [0.0, 100.0], "low": [-9e3, -9e3], "high": [9e3, 9e3]})
    low, high = band_limits(rows)
    assert -70 < low < 0 and 100 < high < 170
    table = rows.assign(task="t", label="sac", env_step=[1, 2], seeds=3)
    figure, _ = curves(table)
    assert "cut off" in figure.get_supxlabel()
    narrow = rows.assign(low=[-1.0, 99.0], high=[1.0, 101.0])
    assert band_limits(narrow)[0] == pytest.approx(-5, abs=2)


def test_curves_of_recorded_runs_stay_inside(runs):
    from diagnostics.metrics.scores import curve

    figure, _ = curves(mean_curves(curve(runs.evals), "return"), runs.events, title="t " * 60)
    assert outside(figure) == []


def test_the_notebook_says_what_twins_that_know_the_mean_have():
    target = torch.tensor([1.0, 2.0, 6.0])
    twins = target.mean().expand(2, 3)
    scaled = float(critic_loss(twins, target).mean() / target.var(correction=0))
    assert scaled == pytest.approx(2)
    book = nbformat.read(ROOT / "notebooks" / "motivating_example.ipynb", as_version=4)
    prose = " ".join(cell.source.replace("\n", " ") for cell in book.cells)
    assert f"know only the mean of the targets have {scaled:.0f}" in prose
    assert f"`online` and `offline` would be {scaled:.0f}" in " ".join(
        (ROOT / "docs" / "probes.md").read_text().split()
    )


def test_the_example_draws_as_the_project_does(runs, tmp_path):
    example = runpy.run_path(str(ROOT / "examples" / "sb3_heatmap.py"))
    table = runs.select(variant="sac", seed=0).critic_loss
    seen = []
    example["draw"].__globals__["crown"] = lambda figure, title: seen.append(figure)
    example["draw"](table, tmp_path / "heatmap.png")
    _, heat, bar = seen[0].axes
    bottom, top = heat.get_ylim()
    assert bottom > top, "the oldest at the top"
    assert bar.get_ylabel() == "critic loss / target variance"
    assert (tmp_path / "heatmap.png").stat().st_size > 10_000


def test_the_scaling_of_an_update_is_drawn_in_house_style(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from speed_scaling import Axis, draw

    axes = [
        Axis("width", "SAC, batch 256", (64, 128, 256, 512), (1.1, 2.5, 7.2, 24.0)),
        Axis("buffer", "SAC, width 256, draw included", (10_000, 100_000, 1_000_000), (8, 8, 8)),
    ]
    draw(axes, tmp_path, "speed_scaling", {"machine": "a processor", "rounds": 5})
    assert {path.suffix for path in tmp_path.iterdir()} == {".png", ".pdf", ".csv", ".json"}
    assert len(pd.read_csv(tmp_path / "speed_scaling.csv")) == 7
    told = json.loads((tmp_path / "speed_scaling.json").read_text())["parameters"]
    assert told["machine"] == "a processor", "a time without its machine means nothing"
    assert "matplotlib.pyplot" not in Path(sys.modules["speed_scaling"].__file__).read_text()


DOSES = [f"{variant} (priming updates {dose})" for variant in ("plain-sac", "norm-sac")
         for dose in (0, 3000, 10000, 30000, 100000)]  # fmt: skip


def test_doses_of_one_variant_have_looks_of_their_own_and_the_order_of_their_size():
    assert names.ordered(reversed(DOSES)) == DOSES
    assert names.ordered(["sac (scale 0.1)", "sac (scale 0.02)"])[0] == "sac (scale 0.02)"
    looks = {(look.colour, look.stroke) for look in lines(DOSES).values()}
    assert len(looks) == len(DOSES)
    many = lines([f"plain-sac (priming updates {dose})" for dose in range(20)]).values()
    assert len({(look.colour, look.stroke) for look in many}) == 20


def test_long_names_keep_to_their_heatmap(runs):
    one = next(iter(loss_grids(runs.critic_loss).values()))
    figure, _ = loss_heatmaps(dict.fromkeys(DOSES, one), runs.events, title="t")
    assert colliding(figure) == []
    assert outside(figure) == []


def test_a_diverged_critic_does_not_fill_the_colour_bar():
    marks = log_ticks(0.5, 3e12)
    assert 5 <= len(marks) <= 10
    assert [tick_text(value) for value in (0.05, 1e3, 2e6, 1e12)] == [
        "0.05", "1,000", r"$2\times10^{6}$", "$10^{12}$"]  # fmt: skip


@pytest.mark.parametrize("kind", ["calibration", "held out"])
def test_groups_of_one_dose_stand_apart(kind):
    known = Calibration.read()
    values = known.values[known.values["set"] == kind]
    signs = {sign.name: sign.name for sign in SIGNS}
    figure, _ = dose_response(values, signs, known.thresholds, title="t")
    assert outside(figure) == []
    told = {text.get_text() for legend in figure.findobj(Legend) for text in legend.get_texts()}
    assert told == set(values["group"]), "groups that are there, and no others"
    spans = []
    for dots in figure.axes[2].collections:
        x = np.sort(np.asarray(dots.get_offsets())[:, 0])
        for part in np.split(x, np.nonzero(np.diff(x) > 0.9)[0] + 1):
            spans.append((part[0], part[-1]))
    spans.sort()
    assert all(one[1] < other[0] for one, other in pairwise(spans))


def test_a_sign_that_no_run_recorded_has_no_panel():
    known = Calibration.read()
    values = known.values[known.values["set"] == "calibration"].assign(offpolicy=np.nan)
    figure, _ = dose_response(values, {"srank": "rank", "offpolicy": "off"}, {}, title="t")
    titles = [axis.get_title(loc="left") for axis in figure.axes if axis.get_visible()]
    assert titles == ["rank"]
    assert any("Not recorded: off." in text.get_text() for text in figure.findobj(Text))


def test_areas_of_two_tasks_do_not_cover_each_other():
    table = pd.DataFrame([{"sign": sign, "task": task, "estimate": 1.0, "low": 0.9, "high": 1.0}
                          for task in ("a", "b") for sign in "abcdefghijklmn"])  # fmt: skip
    figure, _ = areas(table, ["a"], usable=0.8, title="t")
    laid_out(figure)
    assert outside(figure) == []
    axis = figure.axes[0]
    dots = [line for line in axis.lines if line.get_marker() in ("o", "s")]
    heights = np.sort([y for dot in dots for y in axis.transData.transform(dot.get_xydata())[:, 1]])
    size = dots[0].get_markersize() * figure.dpi / 72
    assert np.diff(heights).min() > size
