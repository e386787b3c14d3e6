"""A ring of transitions in one preallocated array, each observation stored once.

Transition `i` (0, 1, 2, ... in order of arrival) lives in row `i % rows`. Its next observation is
the observation of the following row, for that is what the agent saw next. There are `capacity + 1`
rows: the spare one holds the newest observation, whose action is not known yet, so the newest and
the oldest transition never share a row and the ring's seam needs no special case. Where an episode
ends, the following row belongs to another episode; the final observation then sits in a small
table, one entry per stored episode end.

A row is `observation | action | reward | end`, so a transition and its next observation are one
stretch of memory, a *window*. Gathering costs what fetching memory costs, and one stretch is
fetched faster than five pieces that lie apart. Row 0's observation is kept a second time behind the
last row, for the window of that row.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fog.errors import UserError
from fog.replay.batch import FloatArray
from fog.replay.errors import ReplayError

IntArray = NDArray[np.int64]

# `end` of a row: -1 inside an episode, otherwise 2 * (row in the table of final observations) plus
# 1 if terminated.
_INSIDE = -1

_FILE = "transitions.npy"
"""The ring's file with storage `memmap`."""


class Storage:
    """The ring and the rules for writing and gathering rows.

    Attributes:
        obs: Observation of each row.
        action: Action of each row.
        reward: Reward of each row.
        end: -1 inside an episode, otherwise where it ended and how.
        finals: Final observations of the stored episodes that have ended.
    """

    def __init__(
        self,
        obs_dim: int,
        act_dim: int,
        capacity: int,
        storage: Literal["memory", "memmap"] = "memory",
        directory: Path | None = None,
    ) -> None:
        """Allocate the ring.

        `memmap` keeps the arrays in files below `directory`, paged in by the operating system. They
        are scratch: a checkpoint is complete without them.
        """
        for name, value in (("obs_dim", obs_dim), ("act_dim", act_dim), ("capacity", capacity)):
            if value < 1:
                raise ReplayError(f"replay {name} must be at least 1, not {value}")
        if storage not in ("memory", "memmap"):
            raise ReplayError(f"replay storage must be 'memory' or 'memmap', not {storage!r}")
        if storage == "memmap" and directory is None:
            raise ReplayError("replay storage 'memmap' needs a directory for its files")
        self.obs_dim = obs_dim
        self.act_dim = act_dim
        self.capacity = capacity
        self.rows = capacity + 1
        self.width = obs_dim + act_dim + 2
        length = self.rows * self.width + obs_dim
        if storage == "memmap" and directory is not None:
            _require_space(directory, 4 * length)
        self._flat = _allocate(length, directory if storage == "memmap" else None)
        self.obs: FloatArray = self._column(0, (obs_dim,))
        self.action: FloatArray = self._column(obs_dim, (act_dim,))
        self.reward: FloatArray = self._column(obs_dim + act_dim)
        self.end: NDArray[np.int32] = self._column(obs_dim + act_dim + 1).view(np.int32)
        self._behind = self._flat[-obs_dim:]
        # Windows overlap, which no array of floats may in numpy's `take`; as opaque items they
        # are copied by plain indexing, one piece of memory each.
        window = np.dtype((np.void, 4 * (self.width + obs_dim)))
        self._windows: NDArray[np.void] = np.ndarray(
            (self.rows,), window, self._flat, 0, (4 * self.width,)
        )
        self.finals: FloatArray = np.zeros((16, obs_dim), dtype=np.float32)
        self._free = list(range(15, -1, -1))
        self.size = 0
        self.added = 0
        self.in_episode = False

    @property
    def oldest(self) -> int:
        """Id of the oldest stored transition."""
        return self.added - self.size

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self._flat.nbytes + self.finals.nbytes

    def vector(self, value: ArrayLike, length: int, what: str) -> FloatArray:
        """`value` as a finite float32 vector, or an error that says what is wrong with it."""
        try:
            with np.errstate(over="ignore"):
                vector = np.asarray(value, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ReplayError(f"{what} is not an array of numbers: {error}") from None
        if vector.shape != (length,):
            raise ReplayError(f"{what} has shape {vector.shape}, but the replay holds ({length},)")
        if not np.isfinite(vector).all():
            raise ReplayError(f"{what} is not finite: {vector}; check the environment")
        return vector

    def begin(self, obs: ArrayLike) -> None:
        """Start an episode with its first observation."""
        if self.in_episode:
            raise ReplayError("an episode is still under way: add its end before beginning another")
        self._observe(self.added % self.rows, self.vector(obs, self.obs_dim, "observation"))
        self.in_episode = True

    def append(
        self,
        action: FloatArray,
        reward: float,
        next_obs: FloatArray,
        terminated: bool,
        truncated: bool,
    ) -> None:
        """Store a transition that has been checked, evicting the oldest if the ring is full."""
        row = self.added % self.rows
        spare = (self.added + 1) % self.rows
        if self.size == self.capacity:
            if self.end[spare] != _INSIDE:
                self._free.append(int(self.end[spare]) >> 1)
        else:
            self.size += 1
        self.action[row] = action
        self.reward[row] = reward
        if terminated or truncated:
            final = self._free_row()
            self.finals[final] = next_obs
            self.end[row] = 2 * final + int(terminated)
            self.in_episode = False
        else:
            self.end[row] = _INSIDE
            self._observe(spare, next_obs)
        self.added += 1

    def gather(self, ids: IntArray) -> FloatArray:
        """The transitions `ids`, all of them stored, as a block of `len(ids)` rows.

        A row is `observation | action | reward | bootstrap | next observation`.
        """
        rows = ids % self.rows
        # First, and not from the block: this brings one line of every window into the cache with
        # many fetches under way at once; copying alone would wait for one window after the other.
        end = self.end[rows]
        block = self._windows[rows].view(np.float32).reshape(len(ids), -1)
        bootstrap = block[:, self.width - 1]
        bootstrap.fill(1.0)
        is_end = end >= 0
        if is_end.any():
            ends = end[is_end]
            bootstrap[is_end] = 1 - (ends & 1)
            block[is_end, self.width :] = self.finals[ends >> 1]
        return block

    def restored(self) -> None:
        """Put in order what depends on the columns, after they were written from outside."""
        self._behind[:] = self.obs[0]

    def reset_finals(self, finals: FloatArray) -> None:
        """Replace the table of final observations; its entries are then all in use."""
        spare = max(16, len(finals))
        self.finals = np.concatenate([finals, np.zeros((spare, self.obs_dim), dtype=np.float32)])
        self._free = list(range(len(self.finals) - 1, len(finals) - 1, -1))

    def _free_row(self) -> int:
        if not self._free:
            used = len(self.finals)
            self.finals = np.concatenate([self.finals, np.zeros_like(self.finals)])
            self._free = list(range(2 * used - 1, used - 1, -1))
        return self._free.pop()

    def _observe(self, row: int, obs: FloatArray) -> None:
        self.obs[row] = obs
        if row == 0:
            self._behind[:] = obs

    def _column(self, start: int, shape: tuple[int, ...] = ()) -> FloatArray:
        strides = (4 * self.width, 4)[: 1 + len(shape)]
        return np.ndarray((self.rows, *shape), np.float32, self._flat, 4 * start, strides)


def _allocate(length: int, directory: Path | None) -> FloatArray:
    if directory is None:
        return np.zeros(length, dtype=np.float32)
    mapped = np.lib.format.open_memmap(
        directory / _FILE, mode="w+", dtype=np.float32, shape=(length,)
    )
    # A plain view: memmap's own indexing returns memmaps, which is slower.
    return mapped.view(np.ndarray)


def _require_space(directory: Path, needed: int) -> None:
    # A sparse file on a full disk kills the process with a bus error later on: refuse now.
    directory.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(directory).free
    with contextlib.suppress(FileNotFoundError):
        # The file of an earlier sitting is about to be replaced.
        free += 512 * (directory / _FILE).stat().st_blocks
    if free < needed:
        raise UserError(
            f"replay needs {needed / 1e9:.2f} GB in {directory}, which has {free / 1e9:.2f} GB "
            "free: choose another directory or a smaller buffer"
        )
