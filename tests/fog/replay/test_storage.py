"""The ring against a plain list of transitions, for every way an episode can meet the seam."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fog.errors import UserError
from fog.replay import Replay, ReplayError, make_sampler
from fog.replay.batch import split
from fog.seeding import generator

OBS, ACT = 3, 2


def build(capacity: int, name: str = "uniform", **kwargs) -> Replay:
    sampler = make_sampler(name, capacity=capacity, rng=generator(0, "replay"))
    return Replay(OBS, ACT, capacity, sampler=sampler, **kwargs)


@dataclass
class Transition:
    obs: np.ndarray
    action: np.ndarray
    reward: float
    next_obs: np.ndarray
    terminated: bool


def fill(replay: Replay, flags: list[str], rng: np.random.Generator) -> list[Transition]:
    """Add one transition per flag: `-` goes on, `T` terminates, `U` truncates, `B` does both."""
    reference = []
    obs = None
    for flag in flags:
        if obs is None:
            obs = rng.standard_normal(OBS).astype(np.float32)
            replay.begin_episode(obs)
        action = rng.standard_normal(ACT).astype(np.float32)
        next_obs = rng.standard_normal(OBS).astype(np.float32)
        reward = float(np.float32(rng.standard_normal()))
        terminated, truncated = flag in "TB", flag in "UB"
        replay.add(action, reward, next_obs, terminated, truncated)
        reference.append(Transition(obs, action, reward, next_obs, terminated))
        obs = None if terminated or truncated else next_obs
    return reference


def assert_holds(replay: Replay, reference: list[Transition]) -> None:
    ids = np.arange(replay.added - replay.size, replay.added)
    batch = replay.take(ids)
    for k, i in enumerate(ids):
        expected = reference[i]
        assert np.array_equal(batch.obs[k].numpy(), expected.obs)
        assert np.array_equal(batch.action[k].numpy(), expected.action)
        assert np.array_equal(batch.next_obs[k].numpy(), expected.next_obs)
        assert batch.reward[k].item() == expected.reward
        assert batch.bootstrap[k].item() == (0.0 if expected.terminated else 1.0)


@settings(max_examples=150, deadline=None)
@given(
    capacity=st.integers(1, 9),
    flags=st.lists(st.sampled_from("----TUB"), max_size=45),
    seed=st.integers(0, 9),
)
def test_ring_equals_a_list_at_every_step(capacity, flags, seed):
    replay = build(capacity)
    rng = np.random.default_rng(seed)
    reference: list[Transition] = []
    obs = None
    for step, flag in enumerate(flags):
        if obs is None:
            obs = rng.standard_normal(OBS).astype(np.float32)
            replay.begin_episode(obs)
        action, next_obs = rng.standard_normal(ACT), rng.standard_normal(OBS).astype(np.float32)
        assert replay.add(action, 0.5, next_obs, flag in "TB", flag in "UB") == step
        reference.append(Transition(obs, action.astype(np.float32), 0.5, next_obs, flag in "TB"))
        obs = next_obs if flag == "-" else None
        assert replay.size == min(step + 1, capacity)
        assert_holds(replay, reference)
        if obs is None:
            assert replay.current_obs is None
        else:
            assert np.array_equal(replay.current_obs, obs)


def test_many_short_episodes_do_not_leak_final_observations():
    replay = build(50)
    fill(replay, list("T") * 5000, np.random.default_rng(0))
    assert len(replay._storage.finals) <= 64


def test_chunks_give_every_transition_once_and_match_take():
    replay = build(37)
    reference = fill(replay, list("------T---U" * 9), np.random.default_rng(1))
    assert replay.added > replay.capacity
    seen = []
    for ids, batch in replay.chunks(8):
        assert len(ids) <= 8
        assert batch.obs.shape == (len(ids), OBS)
        for k, i in enumerate(ids):
            assert np.array_equal(batch.next_obs[k].numpy(), reference[i].next_obs)
        seen.extend(ids.tolist())
    assert seen == list(range(replay.added - replay.size, replay.added))


def test_batches_have_the_promised_shapes_types_and_content():
    replay = build(20)
    reference = fill(replay, list("-----U---T" * 4), np.random.default_rng(2))
    batch, ids = replay.sample(6, batches=4)
    assert ids.shape == (4, 6)
    assert ids.dtype == np.int64
    assert batch.obs.shape == batch.next_obs.shape == (4, 6, OBS)
    assert batch.action.shape == (4, 6, ACT)
    assert batch.reward.shape == batch.bootstrap.shape == batch.weight.shape == (4, 6)
    for tensor in batch:
        assert tensor.dtype == torch.float32
    for index in np.ndindex(4, 6):
        expected = reference[ids[index]]
        assert np.array_equal(batch.obs[index].numpy(), expected.obs)
        assert np.array_equal(batch.next_obs[index].numpy(), expected.next_obs)
        assert batch.bootstrap[index].item() == 1.0 - expected.terminated
    assert (batch.weight == 1).all()


def test_a_batch_is_not_overwritten_by_the_next_one():
    replay = build(20)
    fill(replay, list("-" * 20), np.random.default_rng(3))
    first, _ = replay.sample(8)
    kept = first.obs.clone()
    for _ in range(5):
        replay.sample(8)
    assert torch.equal(first.obs, kept)


def test_the_path_to_another_device_cuts_the_block_alike():
    block = np.arange(10 * (2 * OBS + ACT + 2), dtype=np.float32).reshape(10, -1)
    weights = np.arange(10, dtype=np.float32).reshape(2, 5)
    for weight in (None, weights):
        here = split(block, (2, 5), OBS, ACT, weight, torch.device("cpu"))
        there = split(block, (2, 5), OBS, ACT, weight, torch.device("meta"))
        for a, b in zip(here, there, strict=True):
            assert (a.shape, a.stride()) == (b.shape, b.stride())
    assert np.array_equal(here.obs.reshape(10, OBS), block[:, :OBS])
    assert np.array_equal(here.next_obs.reshape(10, OBS), block[:, -OBS:])
    assert np.array_equal(here.weight, weights)


BAD = {
    "nan observation": {"next_obs": [0.0, np.nan, 0.0]},
    "infinite observation": {"next_obs": [0.0, np.inf, 0.0]},
    "observation beyond float32": {"next_obs": [0.0, 1e300, 0.0]},
    "nan reward": {"reward": float("nan")},
    "infinite action": {"action": [np.inf, 0.0]},
    "wrong observation shape": {"next_obs": [0.0, 0.0]},
    "wrong action shape": {"action": [[0.0, 0.0]]},
    "vector reward": {"reward": [1.0, 2.0]},
    "words": {"action": ["left", "right"]},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_bad_data_is_refused_and_nothing_is_written(bad):
    replay = build(4, "per")
    reference = fill(replay, list("--T----"), np.random.default_rng(4))
    before = (replay.added, replay.size, replay.counts.copy(), replay.current_obs)
    rows = [a.copy() for a in (replay._storage.obs, replay._storage.action, replay._storage.end)]
    leaves = replay.sampler._tree.leaves.copy()
    good = {"action": [0.0, 0.0], "reward": 1.0, "next_obs": [0.0, 0.0, 0.0]}
    with pytest.raises(UserError) as caught:
        replay.add(**{**good, **bad}, terminated=False, truncated=False)
    assert "\n" not in str(caught.value)
    assert (replay.added, replay.size) == before[:2]
    assert np.array_equal(replay.counts, before[2])
    assert np.array_equal(replay.current_obs, before[3])
    store = replay._storage
    for old, new in zip(rows, (store.obs, store.action, store.end), strict=True):
        assert np.array_equal(old, new)
    assert np.array_equal(leaves, replay.sampler._tree.leaves)
    assert len(replay.partial_episode_actions()) == 4
    assert_holds(replay, reference)


def test_bad_first_observation_begins_no_episode():
    replay = build(4)
    for bad in ([np.nan] * OBS, [0.0] * (OBS + 1)):
        with pytest.raises(ReplayError):
            replay.begin_episode(bad)
    assert replay.current_obs is None
    replay.begin_episode([0.0] * OBS)


def test_misuse_is_refused():
    replay = build(4)
    with pytest.raises(ReplayError, match="empty"):
        replay.sample(2)
    with pytest.raises(ReplayError, match="begin_episode"):
        replay.add([0.0, 0.0], 0.0, [0.0] * OBS, False, False)
    fill(replay, list("-----"), np.random.default_rng(0))
    with pytest.raises(ReplayError, match="under way"):
        replay.begin_episode([0.0] * OBS)
    with pytest.raises(ReplayError):
        replay.sample(0)
    for ids in ([0], [5], [-1], [1, 99]):
        with pytest.raises(ReplayError, match="stored are 1 to 4"):
            replay.take(ids)
    with pytest.raises(ReplayError):
        replay.take([1.5])
    with pytest.raises(ReplayError):
        next(replay.chunks(0))
    for wrong in (
        {"capacity": 0},
        {"capacity": 4, "storage": "tape"},
        {"capacity": 4, "storage": "memmap"},
    ):
        with pytest.raises(UserError):
            build(**wrong)


def test_actions_of_the_current_episode_survive_a_ring_shorter_than_it():
    replay = build(3)
    reference = fill(replay, list("--T-------"), np.random.default_rng(5))
    expected = np.array([t.action for t in reference[3:]])
    assert np.array_equal(replay.partial_episode_actions(), expected)
    replay.add([0.0, 0.0], 0.0, [0.0] * OBS, False, True)
    assert replay.partial_episode_actions().shape == (0, ACT)


def test_caller_may_reuse_its_arrays():
    replay = build(3)
    obs, action = np.zeros(OBS, np.float32), np.zeros(ACT, np.float32)
    replay.begin_episode(obs)
    replay.add(action, 0.0, obs, False, False)
    obs += 1
    action += 1
    assert (replay.take([0]).obs == 0).all()
    assert (replay.partial_episode_actions() == 0).all()
    assert (replay.current_obs == 0).all()


def test_bytes_per_transition():
    capacity, obs_dim, act_dim = 1_000_000, 67, 21
    sampler = make_sampler("per", capacity=capacity, rng=generator(0, "replay"))
    replay = Replay(obs_dim, act_dim, capacity, sampler=sampler)
    replay._counts.reserve(capacity)
    tree = sum(level.nbytes for level in sampler._tree._levels)
    total = replay.nbytes + replay.counts.nbytes + tree
    assert total / capacity <= 1.15 * 4 * (obs_dim + act_dim + 3)


def test_memmap_equals_memory(tmp_path: Path):
    memory, mapped = build(7), build(7, storage="memmap", directory=tmp_path / "ring")
    for replay in (memory, mapped):
        fill(replay, list("---T--U-----"), np.random.default_rng(6))
    assert (tmp_path / "ring" / "transitions.npy").exists()
    for _ in range(3):
        a, ids_a = memory.sample(5, 2)
        b, ids_b = mapped.sample(5, 2)
        assert np.array_equal(ids_a, ids_b)
        for x, y in zip(a, b, strict=True):
            assert torch.equal(x, y)


def test_memmap_refuses_a_disk_that_is_too_small(tmp_path: Path):
    with pytest.raises(UserError, match="free"):
        build(10**13, storage="memmap", directory=tmp_path)


def test_memmap_counts_the_file_that_it_replaces_as_free(tmp_path: Path, monkeypatch):
    """A resume on a disk that the first sitting has filled needs no second ring."""
    first = build(5_000, storage="memmap", directory=tmp_path)
    fill(first, list("-" * 5_001), np.random.default_rng(0))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=4096))
    build(5_000, storage="memmap", directory=tmp_path)
    with pytest.raises(UserError, match="free"):
        build(10_000, storage="memmap", directory=tmp_path)
    with pytest.raises(UserError, match="free"):
        build(5_000, storage="memmap", directory=tmp_path / "elsewhere")


def test_package_does_not_import_torch():
    import subprocess

    code = "import sys, fog.replay; sys.exit('torch' in sys.modules)"
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
