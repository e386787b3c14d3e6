"""A replay buffer in Stable-Baselines3's layout as a replay that probes can read.

CleanRL's scripts use a copy of the same class. Arrays have the shape (rows, environments, ...), and
one step of the vectorised environment fills one row. Transitions are numbered in the order of
insertion: row by row, and within a row by environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fog.errors import UserError
from fog.events import EnvStep, TransitionBatch

IntArray = NDArray[np.int64]

_ARRAYS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


class BufferMemory:
    """Such a buffer as probes see it; counts draws from now on.

    Args:
        buffer: the buffer.
        normaliser: SB3's `VecNormalize`, if observations or rewards are normalised when sampled.
        actions: stored actions to those in [-1, 1] that probes see; None leaves them.
    """

    def __init__(
        self,
        buffer: Any,
        normaliser: Any = None,
        actions: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        _require_layout(buffer)
        self._buffer = buffer
        self._normaliser = normaliser
        self._actions = actions
        self._envs = int(buffer.n_envs)
        # Row r of the ring holds step t with t % rows == r, also if it has wrapped already.
        self._steps = int(buffer.pos) + (buffer.buffer_size if buffer.full else 0)
        self._position = int(buffer.pos)
        self._counts = np.zeros(max(1024, self.added), np.int32)
        self._drawn: list[tuple[IntArray, IntArray]] = []
        self._sample = buffer._get_samples
        buffer._get_samples = self._count

    @property
    def added(self) -> int:
        """Transitions ever added."""
        return self._steps * self._envs

    @property
    def size(self) -> int:
        """Transitions stored now."""
        return min(self._steps * self._envs, self.capacity)

    @property
    def capacity(self) -> int:
        """Transitions that fit."""
        return int(self._buffer.buffer_size) * self._envs

    @property
    def counts(self) -> NDArray[np.int32]:
        """Draws since the probes were attached, by transition."""
        return self._counts[: self.added]

    def arrived(self) -> Iterator[EnvStep]:
        """Take in what was added since the last call, one by one; call it after every step.

        The transitions of one step of the vectorised environment enter the buffer together.
        """
        buffer = self._buffer
        while self._position != buffer.pos:
            row, first = self._position, self.added
            self._position = (row + 1) % buffer.buffer_size
            self._steps += 1
            if self.added > len(self._counts):
                grown = np.zeros(2 * self.added, np.int32)
                grown[: len(self._counts)] = self._counts
                self._counts = grown
            for env in range(self._envs):
                truncated = bool(buffer.timeouts[row, env])
                terminated = bool(buffer.dones[row, env]) and not truncated
                reward = float(buffer.rewards[row, env])
                yield EnvStep(first + env, reward, terminated, truncated)

    def drawn(self) -> IntArray | None:
        """Take in what was drawn since the last call; the ids, one row for each update."""
        if not self._drawn:
            return None
        # Nothing is added between the draws and this call, so rows still mean the same ids. Draws
        # of unequal sizes cannot be stacked: then the counts are exact and the updates unknown.
        ids = [self._ids(rows, envs) for rows, envs in self._drawn]
        self._drawn.clear()
        for each in ids:
            np.add.at(self._counts, each, np.int32(1))
        return np.stack(ids) if len({len(each) for each in ids}) == 1 else None

    def release(self) -> None:
        """Stop counting."""
        del self._buffer._get_samples

    def take(self, ids: IntArray) -> TransitionBatch:
        """Stored transitions, normalised as for training."""
        buffer, where = self._buffer, self._where(np.asarray(ids))
        ends = buffer.dones[where] * (1.0 - buffer.timeouts[where])
        action = torch.as_tensor(np.asarray(buffer.actions[where], np.float32))
        columns = (
            self._observed(buffer.observations[where]),
            self._rewarded(buffer.rewards[where]),
            1.0 - ends,
            self._observed(buffer.next_observations[where]),
        )
        obs, reward, bootstrap, next_obs = (
            torch.as_tensor(np.asarray(column, np.float32)).to(buffer.device) for column in columns
        )
        action = action.to(buffer.device)
        action = action if self._actions is None else self._actions(action)
        return TransitionBatch(obs, action, reward, bootstrap, next_obs)

    def chunks(self, size: int) -> Iterator[tuple[IntArray, TransitionBatch]]:
        """All stored transitions, oldest first."""
        for start in range(self.added - self.size, self.added, size):
            ids = np.arange(start, min(start + size, self.added))
            yield ids, self.take(ids)

    def _where(self, ids: IntArray) -> tuple[IntArray, IntArray]:
        return (ids // self._envs) % self._buffer.buffer_size, ids % self._envs

    def _ids(self, rows: IntArray, envs: IntArray) -> IntArray:
        newest = self._steps - 1
        ids: IntArray = (newest - (newest - rows) % self._buffer.buffer_size) * self._envs + envs
        return ids

    def _observed(self, rows: Any) -> Any:
        if self._normaliser is not None:
            rows = self._normaliser.normalize_obs(rows)
        return rows.reshape(len(rows), -1)

    def _rewarded(self, rewards: Any) -> Any:
        return rewards if self._normaliser is None else self._normaliser.normalize_reward(rewards)

    def _count(self, batch_inds: NDArray[Any], *rest: Any, **options: Any) -> Any:
        rows = np.array(batch_inds, np.int64)
        envs, after = self._environments(len(rows))
        samples = self._sample(batch_inds, *rest, **options)
        if after is not None and not _same(after, np.random.get_state()):  # noqa: NPY002
            raise UserError(
                f"{type(self._buffer).__name__} draws environments in another way than SB3 2.9: "
                "draws cannot be counted with several environments"
            )
        self._drawn.append((rows, envs))
        return samples

    def _environments(self, count: int) -> tuple[IntArray, Any]:
        """Which environments the buffer is about to draw from numpy's global stream.

        It draws them inside and tells nobody. The same numbers are drawn ahead and put back, so
        training does not notice. Also returns the stream's state after the draw.
        """
        if self._envs == 1:
            return np.zeros(count, np.int64), None
        before = np.random.get_state()  # noqa: NPY002
        envs = np.random.randint(0, high=self._envs, size=(count,))  # noqa: NPY002
        after = np.random.get_state()  # noqa: NPY002
        np.random.set_state(before)  # noqa: NPY002
        return envs, after


def _same(one: Any, other: Any) -> bool:
    return bool(one[2] == other[2] and np.array_equal(one[1], other[1]))


def _require_layout(buffer: Any) -> None:
    """Refuse a buffer that stores or draws something else than single transitions."""
    kind = type(buffer).__name__
    space = type(getattr(buffer, "observation_space", None)).__name__
    if "Her" in kind:
        reason = "HER draws goals anew, so a stored transition has no loss of its own"
    elif kind == "DictReplayBuffer" or space == "Dict":
        reason = (
            "observations are dictionaries: flatten them (gymnasium.wrappers.FlattenObservation)"
        )
    elif kind != "ReplayBuffer":
        reason = "only the plain ReplayBuffer stores single transitions in the order of insertion"
    elif getattr(buffer, "optimize_memory_usage", False):
        reason = "with optimize_memory_usage next observations are not stored"
    elif not all(hasattr(buffer, name) for name in (*_ARRAYS, "pos", "full", "n_envs")):
        reason = "it has not the arrays of Stable-Baselines3's ReplayBuffer"
    elif buffer.buffer_size < 2:
        reason = "it holds one step only"
    else:
        return
    raise UserError(f"probes cannot read this {kind}: {reason}")
