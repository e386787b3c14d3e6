"""Dispatch, options, failure and state of probes."""

from __future__ import annotations

import time
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from diagnostics.probes.common import conform
from fog.errors import ConfigError, UserError
from fog.events import EnvStep, Probe
from fog.probing import dispatch, registry
from tests.diagnostics.probes.stage import build


class Idle(Probe):
    name = "idle"


class Failing(Probe):
    name = "failing"

    def on_env_step(self, view, event):
        raise KeyError("no such thing")


def test_a_probe_that_overrides_nothing_is_never_called(tmp_path, monkeypatch):
    probes = build(tmp_path, Idle(), added=1).probes
    assert not any(probes.wants(hook) for hook in dispatch.HOOKS)
    monkeypatch.setattr(Idle, "on_window", lambda *_: pytest.fail("called"), raising=False)
    probes.window()
    probes.env_step(EnvStep(0, 0.0, False, False))
    assert probes.seconds == {"idle": 0.0}


def test_every_hook_of_the_protocol_is_dispatched():
    assert {name for name in vars(Probe) if name.startswith("on_")} == set(dispatch.HOOKS)


def test_a_failing_probe_stops_the_run_by_name(tmp_path):
    probes = build(tmp_path, Failing(), added=1).probes
    with pytest.raises(UserError, match="probe 'failing' failed in on_env_step: KeyError"):
        probes.env_step(EnvStep(0, 0.0, False, False))


class Picky(Probe):
    name = "picky"

    def on_start(self, view):
        raise ValueError("it needs a tail: attach one")


def test_a_probe_refuses_an_agent_before_training(tmp_path):
    probes = build(tmp_path, Picky(), added=1).probes
    with pytest.raises(UserError, match=r"^probe 'picky': it needs a tail: attach one$") as caught:
        probes.start()
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["interference", "offpolicy", "warmstart"])
def test_a_window_without_data_records_nothing(tmp_path, name):
    probes = build(tmp_path, *registry.load([name]), added=0).probes
    probes.window()
    assert not (tmp_path / name).exists()


def test_each_probe_has_a_stream_of_its_own(tmp_path):
    class Other(Probe):
        name = "other"

    probes = build(tmp_path, Idle(), Other(), added=1).probes
    drawn = [view.rng.random() for view in probes._views.values()]
    assert drawn[0] != drawn[1]


def test_names_and_options():
    known = sorted(registry.available())
    assert registry.chosen(["none"]) == [] == registry.chosen([])
    assert registry.chosen(["all"]) == registry.usual() == [n for n in known if n != "curvature"]
    both = registry.chosen(["all", "critic_loss:raw"])
    assert len(both) == len(known) - 1 and "critic_loss:raw" in both
    (probe,) = registry.load(["critic_loss:raw"])
    assert probe._raw is True
    (probe,) = registry.load(["critic_loss:raw=false"])
    assert probe._raw is False
    (probe,) = registry.load(["features:at=0.5+0.1:size=7"])
    assert (probe._at, probe._size) == ([0.1, 0.5], 7)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (["dormncy"], "did you mean 'dormancy'"),
        (["critic_loss:row"], "no option 'row'; it has: raw"),
        (["critic_loss:raw=7"], "not like raw=False"),
        (["features:size=many"], "not like size=2000"),
        (["features:at=1.5"], "share"),
        (["dormancy", "dormancy:batch=8"], "appears twice"),
        (["validation:x"], "it has: none"),
        *(
            ([f"{name}:batch=0"], f"probe '{name}': batch must be at least 1")
            for name in (
                "churn",
                "dormancy",
                "interference",
                "norms",
                "offpolicy",
                "plasticity",
                "srank",
                "warmstart",
            )
        ),
        (["warmstart:rows=9"], "probe 'warmstart': rows must be at least 10"),
        (["warmstart:steps=0"], "probe 'warmstart': steps must be at least 1"),
        (["interference:samples=0"], "probe 'interference': samples must be at least 1"),
        (["interference:windows=0"], "probe 'interference': windows must be at least 1"),
        (["churn:per_window=0"], "probe 'churn': per_window must be at least 1"),
        (["dormancy:per_window=0"], "probe 'dormancy': per_window must be at least 1"),
        (["norms:per_window=0"], "probe 'norms': per_window must be at least 1"),
        (["srank:per_window=-1"], "probe 'srank': per_window must be at least 1"),
    ],
)
def test_mistakes_are_named(spec, message):
    with pytest.raises(ConfigError, match=message):
        registry.load(spec)


def test_a_probe_that_cannot_be_imported_is_named(monkeypatch):
    entry = EntryPoint("broken", "no_such_module:Broken", registry.USUAL)
    monkeypatch.setattr(registry, "available", lambda: {"broken": entry})
    assert registry.chosen(["all"]) == ["broken"], "names alone import nothing"
    with pytest.raises(ConfigError, match="'broken' cannot be loaded from no_such_module:Broken"):
        registry.load(["all"])


def test_seconds_spent_outlive_a_resume(tmp_path):
    class Slow(Probe):
        name = "slow"

        def on_window(self, view):
            time.sleep(0.01)

    before, after = (build(tmp_path, Slow(), added=1).probes for _ in range(2))
    before.window()
    before.save(tmp_path / "saved")
    after.load(tmp_path / "saved")
    assert after.seconds == before.seconds
    after.window()
    assert after.seconds["slow"] >= before.seconds["slow"] + 0.01


def test_every_probe_records_tables_of_the_schema(tmp_path):
    with pytest.raises(ValueError, match=r"missing columns \['counts'\], unknown columns \['x'\]"):
        conform("sample_counts_full", {"x": [1]})
    typed = conform("sample_counts_full", {"counts": [np.array([1, 2])]})
    assert typed["counts"][0].dtype == np.int32
