"""The products of probes: what they say of themselves against what torch counts in a real run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from torch.utils.flop_counter import FlopCounterMode

import fog.probing.dispatch
import fog.probing.registry
from fog.cost.probes import outline, probe_costs, unpriced
from fog.cost.work import work_of
from fog.events import Probe, ProbeCost
from fog.records.sizes import NetworkSpec
from tests.training import tiny


@pytest.mark.parametrize("variant", ["sac", "fog"])
def test_a_probe_makes_about_the_products_that_it_says(
    variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: Counter[str] = Counter()
    original = fog.probing.dispatch.Probes._call

    def call(self: Any, hook: str, *event: Any) -> None:
        listeners: list[Probe] = self._listeners[hook]
        for probe in listeners:
            self._listeners[hook] = [probe]
            with FlopCounterMode(display=False) as counter:
                original(self, hook, *event)
            counted[probe.name] += counter.get_total_flops()
        self._listeners[hook] = listeners

    monkeypatch.setattr(fog.probing.dispatch.Probes, "_call", call)
    # Large enough from the first update on for every probe to have its batch.
    config = tiny(
        tmp_path,
        variant,
        probes=("all", "curvature", "features:at=0.82+0.86+0.9+0.95+1.0"),
        steps=2600,
        warmup_steps=2100,
        capacity=2600,
        replay_ratio=0.05,
        window_steps=2000,
        eval_every=2000,
        reset_steps=(),
        expansion_updates=(),
    )
    run = fog.train(config)
    assert run.status == "finished"
    spec, work = NetworkSpec.from_settings(config.flat(), 3, 1), work_of(config)
    told = outline(config, work, spec, 200)
    for probe in fog.probing.registry.load(config.run.probes):
        cost = probe.cost(told)
        assert cost.flops == pytest.approx(counted[probe.name], rel=0.3), probe.name
        assert (cost.flops == 0) == (probe.name == "sample_counts")


def test_a_probe_that_says_nothing_counts_as_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(Probe):
        name = "silent"

    monkeypatch.setattr("fog.cost.probes._loaded", lambda _: [Silent()])
    config = tiny(tmp_path)
    assert unpriced(config) == ["silent"]
    spec, work = NetworkSpec.from_settings(config.flat(), 3, 1), work_of(config)
    assert probe_costs(config, work, spec, 200) == [ProbeCost()]
    assert fog.cost.estimate([config], calibrate=False).notes[-1].endswith("0: silent")


def test_options_change_the_price(tmp_path: Path) -> None:
    config = tiny(tmp_path)
    run = outline(config, work_of(config), NetworkSpec.from_settings(config.flat(), 3, 1), 200)
    plain, wide = (
        fog.probing.registry.load([s])[0].cost(run) for s in ("srank", "srank:batch=4096")
    )
    assert wide.flops == 2 * plain.flops
    plain, raw = (
        fog.probing.registry.load([s])[0].cost(run) for s in ("critic_loss", "critic_loss:raw")
    )
    assert raw.files == 2 * plain.files and raw.data_bytes > plain.data_bytes
