"""What can be shown of GPUs without one: places of tensors, and reads that wait (docs/gpu.md).

`test_gpu` runs these in a process of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import fog
from fog.agent import Agent, Batch, build_agent
from fog.algorithms import topology
from fog.algorithms.state import flatten
from fog.probing import registry
from fog.records.run_directory import RunDirectory
from fog.settings.config import Config
from fog.settings.variants import VARIANTS, resolve
from tests.fake_cuda import CUDA, FakeGPU, fake_cuda, pretend_cuda
from tests.training import newest, tiny

OBS, ACT, SIZE = 5, 2, 16
PAGE = Path(__file__).parents[1] / "docs" / "gpu.md"


@pytest.fixture(scope="session", autouse=True)
def pretended(tmp_path_factory: pytest.TempPathFactory) -> None:
    pretend_cuda(tmp_path_factory.mktemp("guard"))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGPU]:
    with fake_cuda(monkeypatch) as device:
        yield device


def make_agent(variant: str, **settings: object) -> Agent:
    config = resolve("HalfCheetah-v4", variant, width=16, batch_size=SIZE, **settings)
    return build_agent(config, OBS, ACT, CUDA)


def make_batch(count: int) -> Batch:
    shapes = ((OBS,), (ACT,), (), (), (OBS,), ())
    return Batch(*(torch.rand(count, SIZE, *shape).to(CUDA) for shape in shapes))


def places(agent: Agent) -> dict[str, str]:
    return {name: tensor.device.type for name, tensor in flatten(agent._state)}


def on_host(agent: Agent) -> set[str]:
    """Tensors that are meant to stay there: the counters of NE."""
    return {name for name, place in places(agent).items() if place == "cpu"}


def test_the_stand_in_finds_mixed_devices_and_reads(gpu: FakeGPU) -> None:
    there = torch.ones(3, device=CUDA)
    with pytest.raises(RuntimeError, match="two devices"):
        there + torch.ones(3)
    assert gpu.reads == []
    float(there.sum())
    there.cpu().numpy()
    bool(there[0] > 0)
    assert len(gpu.reads) == 3
    with pytest.raises(AssertionError, match="needs numbers of the device"):
        there[there > 0]
    with pytest.raises(AssertionError, match="needs numbers of the device"):
        there.nonzero()


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_an_agent_lives_on_the_gpu_and_an_update_reads_nothing(gpu: FakeGPU, variant: str) -> None:
    agent = make_agent(variant)
    counters = {f"clock/{name}" for name in ("updates", "actor_calls", "critic_calls")} | {
        "clock/actor_ended",
        "clock/critic_ended",
    }
    expected = counters if agent.backend.name == "ne" else set()
    assert on_host(agent) == expected
    gpu.reads.clear()
    agent.observe(np.zeros(OBS))
    stats = agent.update(make_batch(2))
    assert gpu.reads == []
    assert stats.finite and stats.td_error.shape == (2, SIZE)
    assert agent.act(np.zeros(OBS)).shape == (ACT,)
    assert agent.act(np.zeros((3, OBS)), rng=np.random.default_rng(0)).shape == (3, ACT)
    # The metrics, the errors, and one for each call of act.
    assert len(gpu.reads) == 4
    if agent.depth < agent.spec.maximal_depth:
        agent.expand()
        gpu.reads.clear()
        assert on_host(agent) == expected
        agent.update(make_batch(1))
        assert gpu.reads == []
    before = places(agent)
    agent.load_state_dict(agent.state_dict(), agent.counters())
    assert places(agent) == before
    gpu.reads.clear()
    agent.reset()
    assert on_host(agent) == expected
    agent.update(make_batch(1))
    assert gpu.reads == []
    agent.is_finite()
    assert len(gpu.reads) == 1


def test_steps_of_the_topology_of_ne_read_nothing(gpu: FakeGPU) -> None:
    agent = make_agent("ne")
    clock = agent._state.clock
    gpu.reads.clear()
    for ended in (0.0, 1.0):
        for name in ("critic", "actor"):
            clock[f"{name}_ended"].fill_(ended)
            clock[f"{name}_calls"].fill_(topology.EVERY - 1)
        clock["updates"].fill_(1.0)
        if ended:
            # Networks this small do not grow, so nor does their growth end.
            topology.END, end = 1.0, topology.END
        agent.update(make_batch(1))
        if ended:
            topology.END = end
    assert gpu.reads == []


def listed(heading: str) -> set[str]:
    """The places of a table in docs/gpu.md."""
    section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `([\w/.]+:\w+)` ", section, re.MULTILINE))


RUNS = {
    "fog": {"expansion_updates": (5,), "priming_updates": 10},
    "per-sac": {},
    "simba": {},
    "ne": {},
    "bro": {},
    "fog-injection": {"expansion_updates": (5,)},
}


def short(out: Path, variant: str, probes: tuple[str, ...]) -> Config:
    """Twenty steps with updates, a reset and a checkpoint among them."""
    settings = {"steps": 60, "capacity": 50, "reset_steps": (50,), "checkpoint_every": 55}
    settings |= {"eval_every": 60, "window_steps": 60, "expansion_updates": ()}
    return tiny(out, variant, device="cuda", probes=probes, **settings | RUNS[variant])


@pytest.mark.parametrize("variant", RUNS)
def test_a_run_reads_only_where_the_docs_say(gpu: FakeGPU, variant: str, tmp_path: Path) -> None:
    """Interaction, updates, expansion, evaluation, a reset, checkpoints, and resuming."""
    config = short(tmp_path, variant, ("none",))
    run = fog.train(config)
    assert run.status == "finished"
    RunDirectory(run.directory).update_manifest(status="running", files=None)
    newest(run.directory).rename(tmp_path / "later")
    assert fog.train(config, resume=True).status == "finished"
    expected = listed("Where the loop reads")
    if variant != "per-sac":
        expected -= {"fog/agent/stats.py:td_error"}
    assert set(gpu.reads) == expected


@pytest.mark.slow
def test_every_probe_reads_only_where_the_docs_say(gpu: FakeGPU, tmp_path: Path) -> None:
    probes = (*registry.chosen(("all",)), "curvature")
    assert fog.train(short(tmp_path, "fog", probes)).status == "finished"
    found = {read for read in gpu.reads if read.startswith("diagnostics/")}
    assert found == listed("Where probes read")


def test_without_probes_an_update_in_the_loop_reads_once(gpu: FakeGPU, tmp_path: Path) -> None:
    """One read of the metrics for each portion of updates, and one for each action."""
    config = tiny(
        tmp_path, "sac", device="cuda", probes=("none",), steps=100, eval_every=100, reset_steps=()
    )
    config = config.replace(replay_ratio=4.0, expansion_updates=(), checkpoint_every=100)
    fog.train(config)
    steps = config.run.steps - config.run.warmup_steps
    in_loop = [read for read in gpu.reads if read == "fog/agent/stats.py:_table"]
    assert 0 < len(in_loop) <= steps + 1
    assert "fog/agent/stats.py:td_error" not in gpu.reads
