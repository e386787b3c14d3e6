"""The replay: storage, sampler and exact sample counts behind the few calls a trainer makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fog.replay.batch import Batch, FloatArray, split
from fog.replay.checkpoint import load_replay, save_replay
from fog.replay.counts import CountArray, Counts
from fog.replay.errors import ReplayError
from fog.replay.sampler import Sampler
from fog.replay.storage import IntArray, Storage

if TYPE_CHECKING:
    import torch


class Replay:
    """Keeps the last `capacity` transitions of one environment and draws batches from them."""

    def __init__(
        self,
        obs_dim: int,
        act_dim: int,
        capacity: int,
        *,
        sampler: Sampler,
        device: str | torch.device = "cpu",
        storage: Literal["memory", "memmap"] = "memory",
        directory: Path | None = None,
    ) -> None:
        """Allocate an empty replay; its sampler (see `make_sampler`) has the same capacity.

        `memmap` keeps the arrays in files below `directory`, which the operating system pages in.
        """
        import torch

        if sampler.capacity not in (None, capacity):
            raise ReplayError(f"sampler of capacity {sampler.capacity} in a replay of {capacity}")
        self.sampler = sampler
        self.device = torch.device(device)
        self._storage = Storage(obs_dim, act_dim, capacity, storage, directory)
        self._counts = Counts()
        # Kept apart from the ring: an episode may be longer than the ring.
        self._partial: list[FloatArray] = []

    @property
    def capacity(self) -> int:
        """Most transitions stored at a time."""
        return self._storage.capacity

    @property
    def size(self) -> int:
        """Transitions stored now: those with ids `added - size` to `added - 1`."""
        return self._storage.size

    @property
    def added(self) -> int:
        """Transitions ever added, which is the number of environment steps."""
        return self._storage.added

    @property
    def counts(self) -> CountArray:
        """Draws of every transition ever added, by id; read-only, also for evicted ones."""
        return self._counts.values

    @property
    def current_obs(self) -> FloatArray | None:
        """The newest observation if an episode is under way."""
        store = self._storage
        return store.obs[store.added % store.rows].copy() if store.in_episode else None

    @property
    def nbytes(self) -> int:
        """Bytes of the stored transitions' arrays."""
        return self._storage.nbytes

    def begin_episode(self, obs: ArrayLike) -> None:
        """Record the first observation of an episode."""
        self._storage.begin(obs)
        self._partial.clear()

    def add(
        self,
        action: ArrayLike,
        reward: float,
        next_obs: ArrayLike,
        terminated: bool,
        truncated: bool,
    ) -> int:
        """Store one transition and return its id: 0, 1, 2, ...

        Everything is checked before anything is written. An episode that is both terminated and
        truncated counts as terminated: its value is known to end there.
        """
        store = self._storage
        if not store.in_episode:
            raise ReplayError("no episode is under way: call begin_episode with its observation")
        checked_action = store.vector(action, store.act_dim, "action")
        checked_reward = store.vector(np.reshape(reward, (-1,)), 1, "reward")
        checked_next = store.vector(next_obs, store.obs_dim, "next observation")
        transition = store.added
        self._counts.reserve(transition + 1)
        store.append(
            checked_action, checked_reward[0], checked_next, bool(terminated), bool(truncated)
        )
        self.sampler.add(transition)
        if terminated or truncated:
            self._partial.clear()
        else:
            self._partial.append(checked_action.copy())
        return transition

    def sample(self, batch_size: int, batches: int = 1) -> tuple[Batch, IntArray]:
        """Draw `batches` batches in one gather, and count the draws.

        The batch and the ids drawn both have leading shape (batches, batch_size).
        """
        if self.size == 0:
            raise ReplayError("cannot sample from an empty replay: add a transition first")
        if batch_size < 1 or batches < 1:
            raise ReplayError(f"cannot sample {batches} batches of {batch_size} transitions")
        store = self._storage
        ids, weights = self.sampler.draw(batches, batch_size, store.oldest, store.added)
        self._counts.record(ids)
        return self._gather(ids, weights), ids

    def update_priorities(self, ids: IntArray, td_errors: ArrayLike) -> None:
        """Tell the sampler the critic's TD errors of drawn transitions; most ignore them."""
        if self.sampler.feedback:
            errors = np.asarray(td_errors).ravel()
            self.sampler.update(np.asarray(ids).ravel(), errors, self._storage.oldest)

    def take(self, ids: ArrayLike) -> Batch:
        """The stored transitions `ids`, of any shape; does not count as drawing them."""
        wanted: NDArray[Any] = np.asarray(ids)
        if wanted.dtype.kind not in "iu":
            raise ReplayError(f"transition ids must be integers, not {wanted.dtype}")
        oldest, added = self._storage.oldest, self._storage.added
        if wanted.size and not (oldest <= wanted.min() and wanted.max() < added):
            raise ReplayError(
                f"ids {wanted.min()} to {wanted.max()} asked for, stored are {oldest} to "
                f"{added - 1}"
            )
        return self._gather(wanted.astype(np.int64), None)

    def chunks(self, size: int) -> Iterator[tuple[IntArray, Batch]]:
        """All stored transitions, oldest first, at most `size` at a time."""
        if size < 1:
            raise ReplayError(f"chunks must hold at least 1 transition, not {size}")
        last = self.added
        for start in range(self._storage.oldest, last, size):
            ids = np.arange(start, min(start + size, last))
            yield ids, self._gather(ids, None)

    def partial_episode_actions(self) -> FloatArray:
        """All actions of the episode under way, to step an environment back to where it was."""
        return np.array(self._partial, dtype=np.float32).reshape(-1, self._storage.act_dim)

    def save(self, directory: Path) -> None:
        """Write the live part to `directory` as .npy files and a .json, without copying it."""
        save_replay(directory, self._storage, self.sampler, self.counts, self._partial)

    def load(self, directory: Path) -> None:
        """Go on exactly where `save` left off; a UserError if the files do not fit this replay."""
        counts, self._partial = load_replay(directory, self._storage, self.sampler)
        self._counts.restore(counts)

    def _gather(self, ids: IntArray, weights: FloatArray | None) -> Batch:
        store = self._storage
        block = store.gather(ids.ravel())
        return split(block, ids.shape, store.obs_dim, store.act_dim, weights, self.device)
