"""Parameter counts from configs, against what the norms probe counted in the real networks."""

from __future__ import annotations

from pathlib import Path

import pytest

import diagnostics
from diagnostics.runs.architecture import fullest_cycle, growth, networks_of
from fog.records.sizes import NetworkSpec

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"


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
    sizes = networks_of(run.config, run.manifest).parameters(int(depths[step]))
    assert counted["actor"] == sizes["actor"]
    assert counted["online"] == sizes["critic"]
    if variant == "fog":
        assert counted["offline"] == sizes["offline_critic"]
        assert counted["value"] == sizes["value"]
    assert sizes["trainable"] - 1 == counted.sum()  # the temperature has no layers to measure


SETTINGS = {
    "backbone": "sac",
    "width": 256,
    "initial_depth": 0,
    "maximal_depth": 0,
    "actor_layer_norm": False,
}


@pytest.mark.parametrize(
    "edition", [{"critic": "plain"}, {"stem_layers": 2, "critic_layer_norm": False}]
)
def test_a_plain_critic_has_its_hidden_layer_and_no_norm(edition):
    """17 observations and 6 actions: 23 x 256 + 256 x 256 + 256 weights and their biases."""
    spec = NetworkSpec.from_settings(SETTINGS | edition, 17, 6)
    assert spec.parameters(0)["critic"] == 2 * 72_193


def test_the_size_the_paper_reports():
    # All networks of FoG on HalfCheetah, width 512, 4 blocks: 8 Q, V and the actor.
    settings = SETTINGS | {"backbone": "obac", "width": 512, "maximal_depth": 4}
    total = NetworkSpec.from_settings(settings, 17, 6).parameters(4)["total"]
    assert total == pytest.approx(19.4e6, rel=0.005)


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
