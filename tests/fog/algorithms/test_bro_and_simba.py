"""Our BRO and SimBa against updates of the official code.

The numbers are those of naumix/BiggerRegularizedOptimistic at 5870a13 and SonyResearch/simba at
7d0358b, with small networks: weights before and after, batches and noise.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fog.agent import Batch, build_agent
from fog.algorithms.families import FAMILIES
from fog.algorithms.state import flatten
from fog.records.sizes import count
from fog.records.specs import spec_of
from fog.settings.variants import resolve

HOME = Path(__file__).parents[2] / "fixtures" / "opponents"
OBS, ACT = 5, 2
SIZES = {"width": 16, "actor_width": 8, "batch_size": 8, "discount": 0.99}
SMALL = {
    "bro": ("bro", {**SIZES, "quantiles": 20}),
    "simba": ("simba", {**SIZES, "critics": 1}),
    "simba2": ("simba", {**SIZES, "critics": 2}),
}

NOT_TRAINED = ("_optimiser", "normaliser")


def official(name):
    with np.load(HOME / f"{name}.npz") as file:
        return {key: torch.from_numpy(np.array(file[key])) for key in file.files}


def begun(name, numbers, **changes):
    """Our agent with the official weights."""
    variant, settings = SMALL[name]
    config = resolve("gym:Pendulum-v1", variant, **settings, **changes)
    agent = build_agent(config, OBS, ACT)
    for key, tensor in flatten(agent._state):
        if f"before/{key}" in numbers:
            tensor.copy_(numbers[f"before/{key}"])
    for seen in numbers.get("seen", ()):
        agent.observe(seen.numpy())
    return agent


def batch_of(numbers, k):
    columns = {
        name.removeprefix("batch/"): value[k]
        for name, value in numbers.items()
        if name.startswith("batch/")
    }
    return Batch(**columns, weight=torch.ones_like(columns["reward"]))


def compare(agent, numbers, when):
    ours = dict(flatten(agent._state))
    theirs = {
        name.removeprefix(f"{when}/"): value
        for name, value in numbers.items()
        if name.startswith(f"{when}/")
    }
    trained = {name for name in ours if not name.partition("/")[0].endswith(NOT_TRAINED)}
    assert theirs.keys() == trained
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, rtol=1e-5, atol=1e-5, msg=name)


@pytest.mark.parametrize("name", SMALL)
def test_updates_are_those_of_the_official_code(name):
    numbers = official(name)
    agent = begun(name, numbers)
    compare(agent, numbers, "before")
    family = FAMILIES[agent.config.agent.backbone]
    flag = torch.tensor(False)
    for k, noise in enumerate(numbers["noise"]):
        metrics, _ = family.update_(agent._state, batch_of(numbers, k), noise, flag, agent.hyper)
        if k == 0:
            compare(agent, numbers, "first")
    compare(agent, numbers, "after")
    told = dict(zip(family.METRICS, metrics.tolist(), strict=True))
    names = {"actor_o_loss": "explorer_loss", "kl": "explorer_kl"}
    for key, value in numbers.items():
        if key.startswith("info/"):
            mine = key.removeprefix("info/")
            assert told[names.get(mine, mine)] == pytest.approx(value.item(), rel=2e-5), key


def test_running_statistics_are_the_official_ones():
    numbers = official("simba")
    normaliser = begun("simba", numbers)._state.normaliser
    for name in ("mean", "variance"):
        torch.testing.assert_close(normaliser[name], numbers[name], rtol=1e-5, atol=1e-6)
    assert normaliser["count"].item() == pytest.approx(40.0001)


@pytest.mark.parametrize(
    ("variant", "obs_dim", "act_dim", "critic", "actor", "explorer"),
    [
        ("bro", 17, 6, 1_119_332, 140_812, 140_800),
        ("bro", 51, 19, 1_143_396, 156_198, 156_160),
        ("bro", 223, 38, 1_241_188, 209_996, 209_920),
        ("simba", 17, 6, 4_215_297, 136_076, 0),
        ("simba", 51, 19, 4_239_361, 143_782, 0),
        ("simba", 223, 38, 4_337_153, 170_700, 0),
    ],
)
def test_parameter_counts_are_the_official_ones(variant, obs_dim, act_dim, critic, actor, explorer):
    spec = spec_of(resolve("humanoid-walk", variant).flat(), obs_dim, act_dim)
    counts = [count(spec.critic(spec.initial_depth, 1)), count(spec.actor())]
    assert [*counts, count(spec.explorer())] == [critic, actor, explorer]
