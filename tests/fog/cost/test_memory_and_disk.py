"""Amounts, memory and disk against a real run and the real objects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fog
from fog.agent import build_agent
from fog.cost.disk import checkpoint_bytes, disk_bytes
from fog.cost.memory import replay_bytes, run_bytes, state_bytes
from fog.cost.probes import attached, outline, unpriced
from fog.cost.work import Work, work_of
from fog.probing.registry import available
from fog.records.checkpoint import candidates
from fog.records.sizes import NetworkSpec
from fog.replay import MaxTree, Replay, SumTree, make_sampler
from fog.settings.config import Config
from tests.training import tiny

OBS, ACT, LENGTH = 3, 1, 200


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Work, Path]:
    config = tiny(
        tmp_path_factory.mktemp("runs"), probes=("all",), tensorboard=True, priming_updates=20
    )
    return config, work_of(config), fog.train(config).directory


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _measurements(home: Path, table: str) -> int:
    [joined] = (home / "probes" / table).iterdir()
    return pd.read_parquet(joined)["env_step"].nunique()


def test_everything_happens_as_often_as_counted(finished: tuple[Config, Work, Path]) -> None:
    config, work, home = finished
    events = pd.read_csv(home / "events.csv")
    evals, train = pd.read_csv(home / "evals.csv"), pd.read_csv(home / "train.csv")
    assert work.total_updates == train["updates"].iloc[-1]
    assert work.changes == events["event"].isin(["reset", "expansion"]).sum()
    assert work.checkpoints == (events["event"] == "checkpoint").sum()
    assert work.evaluations == evals["env_step"].nunique()
    assert work.log_rows == len(train)
    assert len(work.windows) == _measurements(home, "sample_fit")
    run = outline(config, work, NetworkSpec.from_settings(config.flat(), OBS, ACT), LENGTH)
    assert run.measurements(20) == _measurements(home, "norms")


def test_updates_are_counted_by_the_depth_they_are_made_with() -> None:
    config = tiny(Path("nowhere"))
    agent, found = build_agent(config, OBS, ACT), dict.fromkeys((2, 3, 4), 0)
    # 260 updates with resets after 80 and 160 of them; expansions 30 and 60 after each birth.
    for updates in (80, 80, 100):
        for _ in range(updates):
            if agent.expansion_due():
                agent.expand()
            agent.updates += 1
            found[agent.depth] += 1
        agent.reset()
    assert work_of(config).updates == found
    # 45 more before the first reset: 125, of which 65 are made at the largest depth.
    primed = work_of(tiny(Path("nowhere"), priming_updates=45))
    assert primed.updates == found | {4: found[4] + 45}


def test_the_batches_of_a_dose_are_drawn_in_portions() -> None:
    spec = NetworkSpec.from_settings(tiny(Path("nowhere")).flat(), OBS, ACT)
    configs = [tiny(Path("nowhere"), priming_updates=dose) for dose in (0, 10, 16, 10_000)]
    sizes = [run_bytes(config, work_of(config), spec, False) for config in configs]
    batch = 4 * 16 * (2 * OBS + ACT + 3)
    assert [size - sizes[0] for size in sizes] == [0, 9 * batch, 15 * batch, 15 * batch]


def test_a_checkpoint_is_as_large_as_estimated(finished: tuple[Config, Work, Path]) -> None:
    config, work, home = finished
    spec = NetworkSpec.from_settings(config.flat(), OBS, ACT)
    actual = _size(candidates(home / "checkpoint")[0])
    assert checkpoint_bytes(config, work, spec, LENGTH) == pytest.approx(actual, rel=0.1)


def test_a_run_directory_is_about_as_large_as_estimated(
    finished: tuple[Config, Work, Path],
) -> None:
    config, work, home = finished
    spec = NetworkSpec.from_settings(config.flat(), OBS, ACT)
    assert disk_bytes(config, work, spec, LENGTH) == pytest.approx(_size(home), rel=0.3)


@pytest.mark.parametrize(("sampler", "trees"), [("uniform", 0), ("cuer", 1), ("per", 2)])
def test_the_replay_takes_the_bytes_that_its_arrays_have(sampler: str, trees: int) -> None:
    config = tiny(Path("nowhere"), sampler=sampler, capacity=250)
    capacity = config.replay.capacity
    drawn = make_sampler(sampler, capacity=capacity, rng=np.random.default_rng(0))
    replay = Replay(OBS, ACT, capacity, sampler=drawn)
    replay.begin_episode(np.zeros(OBS))
    for _ in range(config.run.steps):
        replay.add(np.zeros(ACT), 0.0, np.zeros(OBS), False, False)
    spare = replay._storage.finals.nbytes
    kept = [value for value in vars(drawn).values() if isinstance(value, SumTree | MaxTree)]
    assert len(kept) == trees
    # So small a tree has no nodes above its leaves; a large one has a fifteenth more.
    leaves = sum(tree.leaves.nbytes for tree in kept)
    actual = replay.nbytes - spare + replay.counts.nbytes + leaves * 16 / 15
    assert replay_bytes(config, OBS, ACT) == pytest.approx(actual, abs=1)


def test_a_replay_on_disk_takes_no_memory() -> None:
    config = tiny(Path("nowhere"), storage="memmap")
    assert replay_bytes(config, OBS, ACT) == 4 * config.run.steps


@pytest.mark.parametrize("variant", ["sac", "fog"])
def test_the_agent_takes_the_bytes_of_its_tensors(variant: str) -> None:
    agent = build_agent(tiny(Path("nowhere"), variant), OBS, ACT)
    tensors = agent.state_dict()
    counters = [name for name in tensors if name.endswith(("/step", "/lr", "noise_generator"))]
    actual = sum(tensor.nbytes for name, tensor in tensors.items() if name not in counters)
    assert state_bytes(agent.spec, agent.depth) == actual


def test_every_probe_of_this_project_has_a_price() -> None:
    assert unpriced(tiny(Path("nowhere"), probes=tuple(available()))) == []


def test_options_of_a_probe_do_not_hide_it() -> None:
    config = tiny(Path("nowhere"), probes=("critic_loss:raw", "norms"))
    assert attached(config) == ["critic_loss", "norms"]
