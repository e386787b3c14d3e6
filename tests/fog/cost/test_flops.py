"""The counted FLOPs are those that torch counts while the update runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from fog.agent import build_agent
from fog.cost.flops import TERMS, loss_flops, total_flops, update_flops
from fog.fast import one_twin_pays
from fog.records.sizes import NetworkSpec
from fog.replay.batch import Batch
from fog.settings.config import Config
from fog.settings.variants import resolve

OBS, ACT, BATCH = 7, 3, 16


def _config(backbone: str, depth: int, width: int, **changes: Any) -> Config:
    return resolve(
        "gym:Pendulum-v1",
        "fog",
        backbone=backbone,
        initial_depth=depth,
        maximal_depth=depth,
        expansion_updates=(),
        width=width,
        batch_size=BATCH,
        **changes,
    )


def _batch(*leading: int) -> Batch:
    rng = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn((*leading, *shape), generator=rng)

    return Batch(
        random(OBS), random(ACT), random(), torch.ones(leading), random(OBS), torch.ones(leading)
    )


@pytest.mark.parametrize("backbone", ["sac", "obac"])
@pytest.mark.parametrize(("depth", "width"), [(1, 8), (2, 8), (2, 24), (4, 16)])
def test_an_update_is_counted_exactly(backbone: str, depth: int, width: int) -> None:
    agent = build_agent(_config(backbone, depth, width), OBS, ACT)
    with FlopCounterMode(display=False) as counter:
        agent.update(_batch(1, BATCH))
    assert counter.get_total_flops() == total_flops(agent.spec, depth, BATCH)


@pytest.mark.parametrize("backbone", ["sac", "obac"])
def test_a_wide_update_that_picks_is_counted_exactly(backbone: str) -> None:
    config = _config(backbone, 2, 256)
    agent = build_agent(config, OBS, ACT)
    with FlopCounterMode(display=False) as counter:
        agent.update(_batch(1, BATCH))
    assert one_twin_pays(config)
    assert counter.get_total_flops() == total_flops(agent.spec, 2, BATCH, one_twin=True)


@pytest.mark.parametrize("backbone", ["sac", "obac"])
def test_a_plain_critic_is_counted_exactly(backbone: str) -> None:
    agent = build_agent(_config(backbone, 0, 8, stem_layers=2, critic_layer_norm=False), OBS, ACT)
    with FlopCounterMode(display=False) as counter:
        agent.update(_batch(1, BATCH))
    assert counter.get_total_flops() == total_flops(agent.spec, 0, BATCH)


@pytest.mark.parametrize(
    "changes", [{"pessimism": 0.0}, {"pessimism": 0.5}, {"bc_wait_updates": 0}]
)
def test_the_loss_decides_nothing_about_the_products(changes: dict[str, Any]) -> None:
    agent = build_agent(_config("obac", 2, 8, **changes), OBS, ACT)
    with FlopCounterMode(display=False) as counter:
        agent.update(_batch(1, BATCH))
    assert counter.get_total_flops() == total_flops(agent.spec, 2, BATCH)


@pytest.mark.parametrize("backbone", ["sac", "obac"])
def test_the_losses_of_the_whole_buffer_are_counted_exactly(backbone: str) -> None:
    agent = build_agent(_config(backbone, 3, 8), OBS, ACT)
    noise = torch.zeros(BATCH, ACT)
    with FlopCounterMode(display=False) as counter:
        agent.networks.transition_losses(_batch(BATCH), noise)
    assert counter.get_total_flops() == BATCH * loss_flops(agent.spec, 3)


def test_terms_of_the_offline_networks_are_nothing_for_sac() -> None:
    spec = NetworkSpec.from_settings(_config("sac", 2, 8).flat(), OBS, ACT)
    counted = update_flops(spec, 2, BATCH)
    assert {name for name, flops in counted.items() if flops == 0} == {
        term.name
        for term in TERMS
        if term.network in ("value", "explorer") or term.beside == "explorer"
    }


@pytest.mark.parametrize("variant", ["bro", "simba"])
def test_an_opponent_is_counted_but_for_the_gradient_of_its_observations(variant: str) -> None:
    """Autograd also multiplies back to the observation beside the action, which is not counted."""
    config = resolve("gym:Pendulum-v1", variant, width=64, batch_size=BATCH)
    agent = build_agent(config, OBS, ACT)
    with FlopCounterMode(display=False) as counter:
        agent.update(_batch(1, BATCH))
    assert total_flops(agent.spec, 2, BATCH) == pytest.approx(counter.get_total_flops(), rel=0.02)
    with FlopCounterMode(display=False) as counter:
        agent.networks.transition_losses(_batch(BATCH), torch.zeros(BATCH, ACT))
    assert BATCH * loss_flops(agent.spec, 2) == pytest.approx(counter.get_total_flops(), rel=0.02)
