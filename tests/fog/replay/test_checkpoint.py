"""Saving and loading: exact, lean, and unforgiving towards files that do not fit."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

from fog.errors import UserError
from fog.replay import SAMPLERS, Replay, make_sampler
from fog.seeding import generator


def build(name: str, capacity: int = 20, seed: int = 0, **kwargs) -> Replay:
    sampler = make_sampler(
        name, capacity=capacity, rng=generator(seed, "replay"), epsilon=0.01, quota=8.0
    )
    return Replay(3, 2, capacity, sampler=sampler, **kwargs)


def live(replay: Replay, steps: range, length: int = 6) -> list[np.ndarray]:
    """Go through environment steps `steps`; everything depends on the step alone."""
    drawn = []
    for step in steps:
        rng = np.random.default_rng(step)
        if step % length == 0:
            replay.begin_episode(rng.standard_normal(3))
        end = step % length == length - 1
        terminated = end and (step // length) % 2 == 0
        replay.add(rng.standard_normal(2), step, rng.standard_normal(3), terminated, end)
        batch, ids = replay.sample(4, 2)
        replay.update_priorities(ids, rng.exponential(size=ids.shape))
        drawn += [ids, *(tensor.numpy().copy() for tensor in batch)]
    return drawn


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("saved_at", [0, 1, 4, 6, 19, 20, 21, 41, 42, 71])
@pytest.mark.parametrize("length", [6, 50])
def test_resumed_equals_uninterrupted(tmp_path: Path, name, saved_at, length):
    whole = build(name)
    live(whole, range(saved_at), length)
    whole.save(tmp_path)
    resumed = build(name, seed=99)
    live(resumed, range(13), 5)
    resumed.load(tmp_path)
    assert (resumed.size, resumed.added) == (whole.size, whole.added)
    assert np.array_equal(resumed.counts, whole.counts)
    assert np.array_equal(resumed.partial_episode_actions(), whole.partial_episode_actions())
    if whole.current_obs is None:
        assert resumed.current_obs is None
    else:
        assert np.array_equal(resumed.current_obs, whole.current_obs)
    after = range(saved_at, saved_at + 60)
    for a, b in zip(live(whole, after, length), live(resumed, after, length), strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(resumed.counts, whole.counts)
    ids = np.arange(whole.added - whole.size, whole.added)
    for a, b in zip(whole.take(ids), resumed.take(ids), strict=True):
        assert torch.equal(a, b)


def test_priorities_of_an_older_file_all_count_as_measured(tmp_path: Path):
    """Files did not mark what arrived with its priority and what was measured."""
    saved = build("per")
    live(saved, range(9))
    saved.save(tmp_path)
    marked = np.load(tmp_path / "priorities.npy")
    assert (marked > 0).any()
    np.save(tmp_path / "priorities.npy", np.abs(marked))
    state = json.loads((tmp_path / "replay.json").read_text())
    state["sampler_state"]["max_priority"] = 1e9
    (tmp_path / "replay.json").write_text(json.dumps(state))
    loaded = build("per", seed=5)
    loaded.load(tmp_path)
    np.testing.assert_array_equal(
        loaded.sampler.probabilities(0, 9), saved.sampler.probabilities(0, 9)
    )
    loaded.sampler.add(9)
    assert abs(loaded.sampler.array(9, 10)[0]) == np.abs(marked).max()


def test_memory_and_memmap_read_each_others_files(tmp_path: Path):
    mapped = build("decay", storage="memmap", directory=tmp_path / "ring")
    live(mapped, range(31))
    mapped.save(tmp_path / "saved")
    memory = build("decay")
    memory.load(tmp_path / "saved")
    for a, b in zip(live(mapped, range(31, 50)), live(memory, range(31, 50)), strict=True):
        assert np.array_equal(a, b)


def test_only_the_live_part_is_written(tmp_path: Path):
    replay = build("uniform", capacity=1000)
    live(replay, range(10))
    replay.save(tmp_path)
    assert np.load(tmp_path / "obs.npy").shape == (11, 3)
    assert np.load(tmp_path / "action.npy").shape == (10, 2)
    assert np.load(tmp_path / "counts.npy").sum() == 80
    assert json.loads((tmp_path / "replay.json").read_text())["added"] == 10


def test_memory_is_not_doubled(tmp_path: Path):
    capacity = 50_000
    sampler = make_sampler("uniform", capacity=capacity, rng=generator(0, "replay"))
    replay = Replay(60, 20, capacity, sampler=sampler)
    store = replay._storage
    store.end[:] = -1
    store.size, store.added, store.in_episode = capacity, capacity + 12_345, True
    replay._counts.reserve(store.added)
    for act in (replay.save, replay.load):
        tracemalloc.start()
        act(tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.1 * replay.nbytes


def test_files_that_do_not_fit_are_refused_and_nothing_changes(tmp_path: Path):
    saved = build("per")
    live(saved, range(33))
    saved.save(tmp_path / "good")

    def refused(replay: Replay, directory: Path, match: str) -> None:
        live(replay, range(3))
        before = replay.take([0, 1, 2])
        with pytest.raises(UserError, match=match) as caught:
            replay.load(directory)
        assert "\n" not in str(caught.value)
        assert replay.added == 3
        for a, b in zip(before, replay.take([0, 1, 2]), strict=True):
            assert torch.equal(a, b)

    refused(build("per", capacity=21), tmp_path / "good", "capacity")
    refused(build("uniform"), tmp_path / "good", "sampler")
    refused(build("per"), tmp_path / "none", "missing")

    def damaged(name: str, change) -> Path:
        directory = tmp_path / f"damaged_{name}"
        saved.save(directory)
        path = directory / name
        path.write_bytes(change(path.read_bytes()))
        return directory

    names = ["obs", "action", "reward", "end", "finals", "counts", "priorities", "partial_actions"]
    for name in names:
        refused(build("per"), damaged(f"{name}.npy", lambda data: data[:-3]), "truncated")
    refused(build("per"), damaged("obs.npy", lambda data: data[:7]), "not a readable")
    refused(build("per"), damaged("replay.json", lambda data: data[:40]), "not readable")
    directory = damaged("reward.npy", lambda data: data)
    (directory / "reward.npy").unlink()
    refused(build("per"), directory, "missing")
    np.save(directory / "reward.npy", np.zeros(20))
    refused(build("per"), directory, "expected")

    wrong = make_sampler("per", capacity=20, rng=generator(0, "replay"), alpha=0.9)
    refused(Replay(3, 2, 20, sampler=wrong), tmp_path / "good", "alpha")
    other = make_sampler("per", capacity=20, rng=generator(0, "replay"))
    bigger = Replay(4, 2, 20, sampler=other)
    with pytest.raises(UserError, match="obs_dim"):
        bigger.load(tmp_path / "good")


def test_a_prolonged_run_may_change_its_length_only(tmp_path: Path):
    first = make_sampler("per", capacity=20, rng=generator(0, "replay"), total_steps=100)
    replay = Replay(3, 2, 20, sampler=first)
    live(replay, range(7))
    replay.save(tmp_path)
    longer = make_sampler("per", capacity=20, rng=generator(0, "replay"), total_steps=200)
    Replay(3, 2, 20, sampler=longer).load(tmp_path)
