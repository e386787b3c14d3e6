"""Parameter counts from configs, against what the norms probe counted in the real networks."""

from __future__ import annotations

from pathlib import Path

import pytest

import diagnostics
from diagnostics.architecture import fullest_cycle, growth, network_sizes, sizes_of_run

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"


@pytest.fixture(scope="module")
def runs():
    return diagnostics.load(RUNS)


@pytest.mark.parametrize("variant", ["sac", "fog"])
def test_counts_equal_those_of_the_trained_networks(runs, variant):
    chosen = runs.select(variant=variant, seed=0)
    run = chosen.files[0]
    recorded = chosen.table("norms")
    depths = chosen.train.set_index("env_step")["depth"]
    step = recorded["env_step"][recorded["env_step"].isin(depths.index)].max()
    counted = recorded[recorded["env_step"] == step].set_index("network")["parameters"]
    sizes = sizes_of_run(run.config, run.manifest, int(depths[step]))
    assert counted["actor"] == sizes.actor
    assert counted["online"] == 2 * sizes.critic
    if variant == "fog":
        assert counted["offline"] == 2 * sizes.critic
        assert counted["value"] == sizes.value
    assert sizes.trained == counted.sum()


def test_the_size_the_paper_reports():
    # All networks of FoG on HalfCheetah, width 512, 4 blocks: algorithm.md counts 19.4M.
    sizes = network_sizes(obs_dim=17, act_dim=6, width=512, depth=4)
    assert sizes.total == pytest.approx(19.4e6, rel=0.005)


def test_growth_follows_the_events(runs):
    chosen = runs.select(variant="fog", seed=0)
    run = chosen.files[0]
    history = growth(run.config, run.manifest, chosen.events)
    assert history["event"].iloc[0] == "start"
    cycle = fullest_cycle(history)
    assert cycle["depth"].tolist() == [2, 3, 4]
    assert cycle["since_reset"].tolist() == [0, 100, 200]
    steps = cycle["critic_parameters"].diff().dropna()
    assert steps.nunique() == 1
    rates = cycle["critic_lr"] * cycle["dense_layers"]
    assert rates.tolist() == pytest.approx([rates.iloc[0]] * 3)
