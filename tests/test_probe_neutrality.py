"""Probes look and do not touch: with and without them a run is the same, bit for bit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

import fog
from fog.events import Probe, Update, View
from fog.probing import registry
from tests.training import assert_same_run, newest, tiny

TABLES = {
    "churn",
    "critic_loss",
    "curvature",
    "disagreement",
    "dormancy",
    "features",
    "interference",
    "interference_rank",
    "layer_norms",
    "norms",
    "offpolicy",
    "overestimation",
    "plasticity",
    "sample_counts",
    "sample_counts_full",
    "sample_fit",
    "srank",
    "update_churn",
    "validation",
    "warmstart",
}


# All of them, the frequent ones often enough to meet every phase of a short run.
OFTEN = ("churn", "dormancy", "norms", "srank")
PROBES = ("all", "curvature", *(f"{name}:per_window=4" for name in OFTEN))


# Both expansions of the first life fall between updates of the priming.
DOSES = {"fog": 0, "expanded-sac": 70, "fog-bro": 0, "simba": 0, "ne": 120}
SLOW_DOSES = {"fog-swd": 0, "fog-injection": 30}
ALL_DOSES = DOSES | SLOW_DOSES
GROWING = {"simba": {"maximal_depth": 4, "critics": 1}}


@pytest.fixture(
    scope="module",
    params=[*DOSES, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_DOSES)],
)
def pair(request, tmp_path_factory) -> tuple[Path, Path]:
    """One run without and one with all probes, through priming, two resets and an expansion."""
    home, dose = tmp_path_factory.mktemp(request.param), ALL_DOSES[request.param]
    settings = {"priming_updates": dose, **GROWING.get(request.param, {})}
    bare = fog.train(tiny(home / "bare", request.param, **settings))
    probed = fog.train(tiny(home / "probed", request.param, **settings, probes=PROBES))
    return bare.directory, probed.directory


def test_a_probed_run_is_the_same_run(pair: tuple[Path, Path]) -> None:
    bare, probed = pair
    assert_same_run(bare, probed)
    events = set(pd.read_csv(probed / "events.csv")["event"])
    assert {"reset", *(() if probed.parent.name == "ne" else ("expansion",))} <= events
    assert ("priming" in events) == (ALL_DOSES[probed.parent.name] > 0)
    assert {path.name for path in (probed / "probes").iterdir()} == TABLES
    assert not (bare / "probes").exists()


def test_seconds_per_probe_are_logged(pair: tuple[Path, Path]) -> None:
    rows = pd.read_csv(pair[1] / "train.csv")
    spent = rows.filter(like="probe_seconds.").iloc[-1]
    assert set(spent.index) == {f"probe_seconds.{name}" for name in registry.available()}
    assert (spent > 0).all()


def test_dormancy_is_recorded_around_every_change(pair: tuple[Path, Path]) -> None:
    events = pd.read_csv(pair[1] / "events.csv")
    table = _read(pair[1], "dormancy")
    for kind in ("reset", "expansion"):
        steps = set(events.loc[events["event"] == kind, "env_step"])
        for phase in ("before", "after"):
            assert set(table.loc[table["phase"] == f"{phase} {kind}", "env_step"]) == steps


def test_an_interrupted_run_records_the_same_tables(tmp_path: Path, pair) -> None:
    whole = pair[1]
    variant = whole.parent.name
    cut = tmp_path / "cut" / whole.relative_to(whole.parents[2])
    shutil.copytree(whole, cut)
    shutil.rmtree(newest(cut))
    assert int(newest(cut).name) == 280
    manifest = cut / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"finished"', '"interrupted"'))
    settings = {"priming_updates": ALL_DOSES[variant], **GROWING.get(variant, {})}
    config = tiny(tmp_path / "cut", variant, **settings, probes=PROBES)
    assert fog.train(config, resume=True).status == "finished"
    for name in TABLES:
        parts = [sorted(p.name for p in (run / "probes" / name).iterdir()) for run in (whole, cut)]
        assert parts[0] == parts[1], name
        pd.testing.assert_frame_equal(_read(whole, name), _read(cut, name), check_exact=True)
    assert_same_run(whole, cut)
    spent = pd.read_csv(cut / "train.csv").filter(like="probe_seconds.").dropna()
    assert len(spent) > 1 and (spent.diff().iloc[1:] >= 0).all(axis=None), "clocks went back"


class Idle(Probe):
    """Good: looks at nothing."""

    name = "idle"


class DrawsFromTheAgent(Probe):
    """Bad: takes one number from the agent's noise stream."""

    name = "draws"

    def on_update(self, view: View, event: Update) -> None:
        if view.updates == 50:
            import torch

            torch.rand(1, generator=view.agent._agent._noise)


class WritesAParameter(Probe):
    """Bad: changes one weight in its last bits."""

    name = "writes"

    def on_update(self, view: View, event: Update) -> None:
        if view.updates == 50:
            view.agent.parameters("online")["stem.weight"].mul_(1 + 1e-6)


class DrawsFromTheReplay(Probe):
    """Bad: samples, which counts as drawing and advances the sampler's stream."""

    name = "samples"

    def on_update(self, view: View, event: Update) -> None:
        if view.updates == 50:
            view.replay.sample(1)


SHORT = {"steps": 110, "reset_steps": (), "expansion_updates": (), "eval_every": 110}


@pytest.fixture(scope="module")
def short(tmp_path_factory) -> Path:
    return fog.train(tiny(tmp_path_factory.mktemp("short"), "sac", **SHORT)).directory


@pytest.mark.parametrize("cls", [Idle, DrawsFromTheAgent, WritesAParameter, DrawsFromTheReplay])
def test_the_comparison_catches_a_probe_that_touches(tmp_path, monkeypatch, short, cls) -> None:
    monkeypatch.setattr("fog.probing.observed.load", lambda _: [cls()])
    touched = fog.train(tiny(tmp_path, "sac", **SHORT)).directory
    if cls is Idle:
        assert_same_run(short, touched)
        return
    with pytest.raises(AssertionError):
        assert_same_run(short, touched)


def _read(run: Path, table: str) -> pd.DataFrame:
    parts = sorted((run / "probes" / table).glob("*.parquet"))
    return pd.concat([pd.read_parquet(part) for part in parts], ignore_index=True)
