"""An SB3 replay buffer as a replay that probes can read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from fog.errors import UserError
from fog.events import EnvStep, TransitionBatch

IntArray = NDArray[np.int64]


class BufferMemory:
    """An SB3 replay buffer as probes see it; counts draws from now on."""

    def __init__(self, model: OffPolicyAlgorithm) -> None:
        buffer = model.replay_buffer
        if type(buffer) is not ReplayBuffer or buffer.optimize_memory_usage or buffer.n_envs != 1:
            raise UserError(
                "probes read SB3's plain ReplayBuffer with one environment and without "
                "optimize_memory_usage"
            )
        self._model = model
        self._buffer = buffer
        # Transition i lies in row i % buffer_size, also if the buffer has wrapped already.
        self.added = int(buffer.pos) + (buffer.buffer_size if buffer.full else 0)
        self._position = buffer.pos
        self._counts = np.zeros(max(1024, self.added), np.int32)
        self._drawn: list[IntArray] = []
        self._sample = buffer._get_samples
        buffer._get_samples = self._count

    @property
    def size(self) -> int:
        """Transitions stored now."""
        return self._buffer.buffer_size if self._buffer.full else int(self._buffer.pos)

    @property
    def counts(self) -> NDArray[np.int32]:
        """Draws since the probes were attached, by transition."""
        return self._counts[: self.added]

    def arrived(self) -> Iterator[EnvStep]:
        """Take in what was added since the last call, one by one; call it after every step."""
        buffer = self._buffer
        while self._position != buffer.pos:
            row, transition = self._position, self.added
            self._position = (row + 1) % buffer.buffer_size
            self.added += 1
            if self.added > len(self._counts):
                grown = np.zeros(2 * len(self._counts), np.int32)
                grown[: len(self._counts)] = self._counts
                self._counts = grown
            truncated = bool(buffer.timeouts[row, 0])
            terminated = bool(buffer.dones[row, 0]) and not truncated
            yield EnvStep(transition, float(buffer.rewards[row, 0]), terminated, truncated)

    def drawn(self) -> IntArray | None:
        """Take in what was drawn since the last call; the ids, one row for each update."""
        if not self._drawn:
            return None
        # Nothing is added between the draws and this call, so rows still mean the same ids.
        newest = self.added - 1
        ids: IntArray = newest - (newest - np.stack(self._drawn)) % self._buffer.buffer_size
        self._drawn.clear()
        np.add.at(self._counts, ids.ravel(), np.int32(1))
        return ids

    def release(self) -> None:
        """Stop counting."""
        del self._buffer._get_samples

    def take(self, ids: IntArray) -> TransitionBatch:
        """Stored transitions, normalised as for training."""
        buffer, env = self._buffer, self._model._vec_normalize_env
        rows = np.asarray(ids) % buffer.buffer_size
        ends = buffer.dones[rows, 0] * (1.0 - buffer.timeouts[rows, 0])
        reward = buffer._normalize_reward(buffer.rewards[rows, 0].reshape(-1, 1), env)
        columns = (
            buffer._normalize_obs(buffer.observations[rows, 0], env).reshape(len(rows), -1),
            buffer.actions[rows, 0],
            reward[:, 0],
            1.0 - ends,
            buffer._normalize_obs(buffer.next_observations[rows, 0], env).reshape(len(rows), -1),
        )
        arrays = (torch.as_tensor(np.asarray(c, np.float32)) for c in columns)
        return TransitionBatch(*(array.to(buffer.device) for array in arrays))

    def chunks(self, size: int) -> Iterator[tuple[IntArray, TransitionBatch]]:
        """All stored transitions, oldest first."""
        for start in range(self.added - self.size, self.added, size):
            ids = np.arange(start, min(start + size, self.added))
            yield ids, self.take(ids)

    def _count(self, batch_inds: NDArray[Any], env: Any = None) -> Any:
        self._drawn.append(np.array(batch_inds, np.int64))
        return self._sample(batch_inds, env=env)
