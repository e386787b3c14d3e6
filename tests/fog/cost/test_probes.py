"""The products of probes: what the table says against what torch counts in a real run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from torch.utils.flop_counter import FlopCounterMode

import fog
from fog.cost.probes import PROBES, probe_flops
from fog.cost.work import work_of
from fog.events import Probe
from fog.records.sizes import NetworkSpec
from tests.training import tiny


@pytest.mark.parametrize("variant", ["sac", "fog"])
def test_a_probe_makes_about_the_products_of_the_table(
    variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: Counter[str] = Counter()
    original = fog.probing.Probes._call

    def call(self: Any, hook: str, *event: Any) -> None:
        listeners: list[Probe] = self._listeners[hook]
        for probe in listeners:
            self._listeners[hook] = [probe]
            with FlopCounterMode(display=False) as counter:
                original(self, hook, *event)
            counted[probe.name] += counter.get_total_flops()
        self._listeners[hook] = listeners

    monkeypatch.setattr(fog.probing.Probes, "_call", call)
    # Large enough from the first update on for every probe to have its batch.
    config = tiny(
        tmp_path,
        variant,
        probes=("all", "features:at=0.82+0.86+0.9+0.95+1.0"),
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
    for name in PROBES:
        if name == "sample_counts":
            assert counted[name] == 0
            continue
        assert probe_flops(name, config, work, spec, 200) == pytest.approx(
            counted[name], rel=0.3
        ), name
