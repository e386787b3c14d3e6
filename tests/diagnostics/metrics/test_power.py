"""Power against a simulation that shares no code with it, and against the textbook."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from diagnostics.commands.power import _named, command
from diagnostics.metrics.power import MOST_SEEDS, bootstrap_power, seeds_needed, welch_power
from diagnostics.studies.claims import Claim
from fog.cli import main
from tests.diagnostics.recorded import TASK, copy


def simulated(effect: float, spreads: tuple[float, ...], seeds: int, trials: int = 4000) -> float:
    """Share of experiments whose whole Welch interval lies above zero, by scipy's own test."""
    rng = np.random.default_rng(1)
    one = rng.normal(effect, spreads[0], (trials, seeds))
    if len(spreads) == 1:
        low = stats.ttest_1samp(one, 0.0, axis=1).confidence_interval().low
    else:
        other = rng.normal(0.0, spreads[1], (trials, seeds))
        low = stats.ttest_ind(one, other, axis=1, equal_var=False).confidence_interval().low
    return float(np.mean(low > 0))


@pytest.mark.parametrize(
    ("effect", "spreads", "seeds"),
    [
        *((1.0, (1.0, 1.0), 6), (1.0, (1.0, 2.0), 10), (0.5, (1.0, 0.2), 20), (1.0, (1.5,), 8)),
        # Three seeds of each are what the field often has.
        *((4.0, (1.0, 1.0), 2), (3.07, (1.0, 1.0), 3), (2.4, (1.0, 1.0), 4), (3.0, (1.0, 0.1), 3)),
    ],
)
def test_power_is_that_of_simulated_experiments(effect, spreads, seeds):
    assert welch_power(effect, spreads, seeds) == pytest.approx(
        simulated(effect, spreads, seeds), abs=0.03
    )


def test_the_textbooks_number_of_seeds():
    """Cohen: d = 0.5 needs 64 per group, d = 0.8 needs 26, for 80 % at 5 % two-sided."""
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, 40))
    samples = tuple((sample - sample.mean()) / sample.std(ddof=1) for sample in (one, other))
    assert seeds_needed(0.5, samples).welch == 64
    assert seeds_needed(0.8, samples).welch == 26


def test_bootstrap_agrees_for_normal_runs_and_sees_skewed_ones():
    rng = np.random.default_rng(0)
    normal = tuple(rng.standard_normal((2, 200)))
    welch = welch_power(0.8, tuple(s.std(ddof=1) for s in normal), 12)
    assert bootstrap_power(0.8, normal, 12, rng) == pytest.approx(welch, abs=0.03)
    skewed = tuple(rng.lognormal(0, 1.5, (2, 200)))
    spreads = tuple(s.std(ddof=1) for s in skewed)
    assert abs(bootstrap_power(4.0, skewed, 8, rng) - welch_power(4.0, spreads, 8)) > 0.05


def test_a_skewed_tail_stays_on_its_side_of_the_effect():
    rng = np.random.default_rng(0)
    sample = rng.exponential(size=400)
    shape = (sample - sample.mean()) / sample.std()

    def decided(sign: float) -> float:
        """By scipy, of experiments with such returns around an effect of either sign."""
        drawn = 0.5 * sign + rng.choice(shape, (4000, 8))
        ends = stats.ttest_1samp(drawn, 0.0, axis=1).confidence_interval()
        return float(np.mean((ends.low if sign > 0 else -ends.high) > 0))

    for sign in (1.0, -1.0):
        found = bootstrap_power(0.5 * sign, (shape,), 8, np.random.default_rng(2))
        assert found == pytest.approx(decided(sign), abs=0.03)
    assert abs(decided(1.0) - decided(-1.0)) > 0.1


def test_common_seeds_need_fewer_where_they_share_their_luck():
    rng = np.random.default_rng(0)
    luck, noise = rng.standard_normal(30), 0.3 * rng.standard_normal((2, 30))
    found = seeds_needed(0.4, (luck + noise[0], luck + noise[1]), paired=True)
    assert found.paired is not None and found.welch is not None
    assert found.paired < found.welch / 4


def test_what_cannot_be_known():
    one = np.array([1.0])
    assert seeds_needed(1.0, (one, one)) == (None, None, None)
    wide = np.array([-1e6, 1e6, 0.0])
    assert seeds_needed(1e-3, (wide, wide)).welch is None
    assert MOST_SEEDS >= 1000


@pytest.fixture(scope="module")
def spread(tmp_path_factory):
    """Three seeds each of two variants, whose late returns are known."""
    home = tmp_path_factory.mktemp("power")
    returns = {"sac": (100.0, 110.0, 120.0), "sac-reset": (130.0, 142.0, 148.0)}
    for variant, values in returns.items():
        for seed, value in enumerate(values):
            run = copy(home / variant / str(seed), variant, 0)
            config = run / "config.yaml"
            config.write_text(config.read_text().replace("\n  seed: 0\n", f"\n  seed: {seed}\n"))
            evals = pd.read_csv(run / "evals.csv")
            evals["return"] = value
            evals.to_csv(run / "evals.csv", index=False)
    return home, returns


def _hours(home, variant):
    """All seeds of a variant are copies of one run."""
    train = pd.read_csv(home / variant / "0" / TASK / variant / "seed0" / "train.csv")
    updates = np.diff(train["updates"], prepend=0)
    usable = (train["updates_per_second"] > 0) & (updates > 0)
    return (updates / train["updates_per_second"])[usable].sum() / 3600


def test_the_command_reads_the_samples_of_runs(spread, capsys):
    home, returns = spread
    arguments = ["--runs", str(home), "--claim", "returns of the mot", "--json"]
    assert command(arguments) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["effect"] for row in rows] == ["observed", "half"]
    one, other = (np.array(returns[name]) for name in ("sac-reset", "sac"))
    for row, share in zip(rows, (1.0, 0.5), strict=True):
        assert row["size"] == pytest.approx(share * 30.0)
        assert row["spreads"] == pytest.approx([one.std(ddof=1), other.std(ddof=1)])
        wanted = seeds_needed(share * 30.0, (one, other), paired=True)
        assert (row["welch"], row["bootstrap"], row["paired"]) == wanted
        assert row["paired"] <= row["welch"]
        missing = max(0, row["welch"] - 3)
        assert row["hours"] == pytest.approx(missing * sum(_hours(home, name) for name in returns))


def test_the_start_of_a_name_chooses_all_claims_that_begin_so():
    names = ("returns of A", "returns of A (primed)", "loss of A")
    claims = {name: Claim(name, "statement", ()) for name in names}
    assert [claim.name for claim in _named("Returns", claims)] == list(names[:2])
    assert [claim.name for claim in _named("returns of A", claims)] == ["returns of A"]


def test_the_command_in_words_and_its_mistakes(spread, capsys, tmp_path):
    home, _ = spread
    named = ["--claim", "returns of the mot"]
    assert main(["power", "--runs", str(home), "--effect", "3", *named]) == 0
    told = capsys.readouterr().out
    assert "given +3" in told and "SAC with reset against SAC" in told
    for arguments, words in (
        (["--runs", str(home), "--claim", "retruns"], "unknown claim 'retruns'"),
        (["--runs", str(home), "--claim", ""], "unknown claim ''"),
        (["--runs", str(home), "--effect", "nan", *named], "other than 0, got nan"),
        (["--runs", str(home), "--effect", "3"], "--effect needs --claim"),
        (["--runs", str(tmp_path)], "no runs in"),
        (["--runs", str(home / "sac"), "--claim", "returns of FoG's"], "two seeds"),
    ):
        assert main(["power", *arguments]) == 2
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1


def test_agents_with_and_without_layer_norm_are_told_apart(tmp_path, capsys):
    for norm in (True, False):
        for variant in ("sac", "sac-reset"):
            for seed in range(2):
                run = copy(
                    tmp_path / str(norm), variant, seed, probes=False,
                    priming_updates=100_000, critic_layer_norm=norm,
                )  # fmt: skip
                evals = pd.read_csv(run / "evals.csv")
                evals["return"] = seed + 10.0 * norm + 100.0 * (variant == "sac")
                evals.to_csv(run / "evals.csv", index=False)
    arguments = ["power", "--runs", str(tmp_path), "--claim", "returns of the mot", "--json"]
    assert main(arguments) == 0
    found = {row["sides"]: row["size"] for row in json.loads(capsys.readouterr().out)}
    assert len(found) == 2 and all("primed 100,000" in sides for sides in found)
