"""Saving and loading a replay: one .npy file per array, one .json for the rest.

Only stored transitions are written, oldest first. The ring's two stretches go to and from disk
column by column, a piece at a time, so neither direction needs a second copy. Files are checked
before the replay is touched.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fog.errors import UserError
from fog.replay import files
from fog.replay.batch import FloatArray
from fog.replay.counts import CountArray
from fog.replay.sampler import Sampler
from fog.replay.storage import Storage

_VERSION = 1
_FLOAT = np.dtype(np.float32)
_INT = np.dtype(np.int32)


def save_replay(
    directory: Path,
    store: Storage,
    sampler: Sampler,
    counts: CountArray,
    partial: list[FloatArray],
) -> None:
    """Write everything needed to go on."""
    directory.mkdir(parents=True, exist_ok=True)
    stored = _stretches(store.oldest, store.added, store.rows)
    seen = _stretches(store.oldest, store.added + store.in_episode, store.rows)
    files.write(directory / "obs.npy", [store.obs[part] for part in seen])
    files.write(directory / "action.npy", [store.action[part] for part in stored])
    files.write(directory / "reward.npy", [store.reward[part] for part in stored])
    # Entries of the table of final observations are numbered afresh, in order of their episodes.
    end = np.concatenate([store.end[part] for part in stored])
    ends = np.flatnonzero(end >= 0)
    finals = store.finals[end[ends] >> 1]
    end[ends] = 2 * np.arange(len(ends)) + (end[ends] & 1)
    files.write(directory / "end.npy", [end])
    files.write(directory / "finals.npy", [finals])
    files.write(directory / "counts.npy", [counts])
    actions = np.array(partial, dtype=np.float32).reshape(-1, store.act_dim)
    files.write(directory / "partial_actions.npy", [actions])
    priorities = sampler.array(store.oldest, store.added)
    if priorities is not None:
        files.write(directory / "priorities.npy", [priorities])
    state = {
        "version": _VERSION,
        **_identity(store, sampler),
        "size": store.size,
        "added": store.added,
        "in_episode": store.in_episode,
        "finals": len(finals),
        "partial_actions": len(actions),
        "sampler_state": sampler.scalars(),
    }
    (directory / "replay.json").write_text(json.dumps(state, indent=1) + "\n")


def load_replay(
    directory: Path, store: Storage, sampler: Sampler
) -> tuple[CountArray, list[FloatArray]]:
    """Fill `store` and `sampler`; returns the sample counts and the partial episode's actions."""
    state = _read_state(directory / "replay.json", store, sampler)
    size, added, in_episode = state["size"], state["added"], state["in_episode"]
    shapes: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {
        "obs": ((size + in_episode, store.obs_dim), _FLOAT),
        "action": ((size, store.act_dim), _FLOAT),
        "reward": ((size,), _FLOAT),
        "end": ((size,), _INT),
        "finals": ((state["finals"], store.obs_dim), _FLOAT),
        "counts": ((added,), _INT),
        "partial_actions": ((state["partial_actions"], store.act_dim), _FLOAT),
    }
    tree = sampler.array(0, 0) is not None
    if tree:
        shapes["priorities"] = ((size,), np.dtype(np.float64))
    for name, (shape, dtype) in shapes.items():
        files.check(directory / f"{name}.npy", shape, dtype)

    def small(name: str) -> NDArray[Any]:
        array = np.empty(*shapes[name])
        files.read(directory / f"{name}.npy", [array])
        return array

    oldest = added - size
    stored = _stretches(oldest, added, store.rows)
    seen = _stretches(oldest, added + in_episode, store.rows)
    files.read(directory / "obs.npy", [store.obs[part] for part in seen])
    files.read(directory / "action.npy", [store.action[part] for part in stored])
    files.read(directory / "reward.npy", [store.reward[part] for part in stored])
    files.read(directory / "end.npy", [store.end[part] for part in stored])
    store.reset_finals(small("finals"))
    store.restored()
    store.size, store.added, store.in_episode = size, added, in_episode
    priorities = small("priorities") if tree else None
    sampler.restore(state["sampler_state"], priorities, oldest, added)
    return small("counts"), list(small("partial_actions"))


def _identity(store: Storage, sampler: Sampler) -> dict[str, Any]:
    return {
        "obs_dim": store.obs_dim,
        "act_dim": store.act_dim,
        "capacity": store.capacity,
        "sampler": sampler.name,
        "sampler_settings": sampler.settings(),
    }


def _read_state(path: Path, store: Storage, sampler: Sampler) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"{path} is missing: no replay was saved there") from None
    except ValueError as error:
        raise UserError(f"{path} is not readable ({error})") from None
    for name, value in {"version": _VERSION, **_identity(store, sampler)}.items():
        if state.get(name) != value:
            raise UserError(
                f"{path.parent} was saved with {name} {state.get(name)}, but this replay has "
                f"{value}: resume with the settings of the saved run"
            )
    return state


def _stretches(first: int, last: int, rows: int) -> list[slice]:
    """The rows of ids `first` to `last - 1`: two slices, the second often empty."""
    start, count = first % rows, last - first
    before_seam = min(count, rows - start)
    return [slice(start, start + before_seam), slice(0, count - before_seam)]
