"""Samplers that carry one priority per stored transition: `per` and `cuer`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fog.errors import ConfigError
from fog.replay.batch import FloatArray
from fog.replay.errors import ReplayError
from fog.replay.sampler import Probabilities, Sampler
from fog.replay.storage import IntArray
from fog.replay.sumtree import MaxTree, SumTree

# Added to |TD error| so that a transition fitted perfectly can still be drawn.
_MIN_ERROR = 1e-6


class _TreeSampler(Sampler):
    """Draws in proportion to priorities kept in a sum tree; transition i sits at i % capacity."""

    feedback = True
    capacity: int

    def __init__(self, rng: np.random.Generator, capacity: int) -> None:
        super().__init__(rng)
        self.capacity = capacity
        self._tree = SumTree(capacity)

    def _draw(self, batches: int, batch_size: int, added: int) -> tuple[IntArray, IntArray]:
        """Ids and their leaves. A leaf holds the youngest id that is congruent to it."""
        leaves = self._tree.draw(self.rng.random(batches * batch_size)).reshape(batches, -1)
        newest = added - 1
        return newest - (newest - leaves) % self.capacity, leaves

    def _leaves(self, oldest: int, added: int) -> IntArray:
        return np.arange(oldest, added) % self.capacity

    def probabilities(self, oldest: int, added: int) -> Probabilities:
        """Each priority over the sum of all."""
        priorities = self._tree.leaves[self._leaves(oldest, added)]
        return np.asarray(priorities / priorities.sum())

    def array(self, oldest: int, added: int) -> NDArray[np.float64]:
        """The priorities, oldest first."""
        return self._tree.leaves[self._leaves(oldest, added)]

    def restore(
        self, scalars: dict[str, Any], array: NDArray[np.float64] | None, oldest: int, added: int
    ) -> None:
        """See `Sampler.restore`."""
        super().restore(scalars, array, oldest, added)
        self._tree.leaves[:] = 0.0
        self._tree.leaves[self._leaves(oldest, added)] = array
        self._tree.rebuild()


class PrioritisedSampler(_TreeSampler):
    """Proportional prioritised replay (Schaul et al. 2016).

    Priority p = (|TD error| + 1e-6)^alpha, P = p / sum(p). The importance weight is
    (size * P)^-beta divided by the largest of its batch; beta goes linearly from `beta` to
    `beta_final` over `total_steps` environment steps, so it depends on nothing that a resumed run
    could lose. Draws are independent rather than stratified: each follows P exactly.

    A new transition gets the largest priority that a TD error gives to a stored transition now, or
    1 if none has been drawn yet. It is not the largest ever seen, because newborn critics have huge
    errors for a moment and every later transition would carry that spike. Nor do priorities count
    that were handed out on arrival, because newcomers would pass the spike on among themselves.
    """

    name = "per"

    def __init__(
        self,
        rng: np.random.Generator,
        capacity: int,
        alpha: float,
        beta: float,
        beta_final: float,
        total_steps: int,
    ) -> None:
        """Check the settings named above."""
        super().__init__(rng, capacity)
        for name, value in (("alpha", alpha), ("beta", beta), ("beta_final", beta_final)):
            if not 0.0 <= value <= 1.0:
                raise ConfigError(f"per {name} must lie in [0, 1], not {value}")
        if total_steps < 1:
            raise ConfigError(f"per total_steps must be at least 1, not {total_steps}")
        self._alpha = alpha
        self._beta = beta
        self._beta_final = beta_final
        self._total_steps = total_steps
        # Priorities that come of TD errors; 0 for a transition that was never drawn.
        self._measured = MaxTree(capacity)

    def beta_at(self, added: int) -> float:
        """The exponent of the importance weights after `added` environment steps."""
        share = min(1.0, added / self._total_steps)
        return self._beta + share * (self._beta_final - self._beta)

    def add(self, transition: int) -> None:
        """Give the new transition the largest measured priority; the one evicted counts no more."""
        leaf = transition % self.capacity
        self._measured.set_one(leaf, 0.0)
        self._tree.set_one(leaf, self._measured.largest or 1.0)

    def draw(
        self, batches: int, batch_size: int, oldest: int, added: int
    ) -> tuple[IntArray, FloatArray | None]:
        """See `Sampler.draw`. size and sum(p) cancel when dividing by the largest weight."""
        ids, leaves = self._draw(batches, batch_size, added)
        priorities = self._tree.leaves.take(leaves)
        relative = priorities / priorities.min(axis=1, keepdims=True)
        weights = relative ** -self.beta_at(added)
        return ids, weights.astype(np.float32)

    def update(self, ids: IntArray, td_errors: NDArray[Any], oldest: int) -> None:
        """Turn TD errors into priorities; transitions evicted meanwhile are passed over."""
        errors = np.abs(np.asarray(td_errors, dtype=np.float64))
        if errors.shape != ids.shape:
            raise ReplayError(f"{ids.shape} ids, but TD errors have shape {errors.shape}")
        if not np.isfinite(errors).all():
            raise ReplayError("TD errors are not finite: training has diverged")
        priorities = (errors + _MIN_ERROR) ** self._alpha
        stored = ids >= oldest
        if not stored.all():
            ids, priorities = ids[stored], priorities[stored]
        if ids.size:
            leaves = ids % self.capacity
            self._tree.set(leaves, priorities)
            self._measured.set(leaves, priorities)

    def settings(self) -> dict[str, float]:
        """See `Sampler.settings`; `total_steps` may change, so that a run can be prolonged."""
        return {"alpha": self._alpha, "beta": self._beta, "beta_final": self._beta_final}

    def array(self, oldest: int, added: int) -> NDArray[np.float64]:
        """The priorities, oldest first; negative where no TD error has set them yet."""
        leaves = self._leaves(oldest, added)
        priorities = self._tree.leaves[leaves]
        return np.where(self._measured.leaves[leaves] > 0.0, priorities, -priorities)

    def restore(
        self, scalars: dict[str, Any], array: NDArray[np.float64] | None, oldest: int, added: int
    ) -> None:
        """See `Sampler.restore`."""
        assert array is not None
        super().restore(scalars, np.abs(array), oldest, added)
        self._measured.leaves[:] = 0.0
        self._measured.leaves[self._leaves(oldest, added)] = np.maximum(array, 0.0)
        self._measured.rebuild()


class CorrectedUniformSampler(_TreeSampler):
    """Corrected uniform experience replay (CUER, Yenicesu et al. 2024).

    A new transition gets priority `quota`, the draws it is owed, and every draw of it pays one off,
    P' = max(P - 1, floor); P(i) = P_i / sum(P). The small floor keeps a fully paid transition
    drawable. No importance weights. TD errors are not used: the draw itself is the feedback.

    No code was published, so this is a reading. (Taken literally, their P' = P (Psi - 1) / Psi with
    Psi = sum(P) changes next to nothing at Psi of 1e5 and more.) Their number for `quota` is the
    batch size. At replay ratio 1 that is what one environment step draws: every transition is drawn
    about equally often, which is the aim they state. At replay ratio k a new transition is paid off
    in its first steps, with 1/k of all draws, and the others are uniform over the rest. With
    `quota` = k x batch size counts are even at any k, but draws then fall off as exp(-age / length
    of the warm-up): see docs/replay.md.
    """

    name = "cuer"

    def __init__(self, rng: np.random.Generator, capacity: int, quota: float, floor: float) -> None:
        """Check the settings named above."""
        super().__init__(rng, capacity)
        if not 0.0 < floor <= quota < np.inf:
            raise ConfigError(f"cuer needs 0 < floor <= quota, not floor {floor}, quota {quota}")
        self._quota = quota
        self._floor = floor

    def add(self, transition: int) -> None:
        """Owe the new transition its quota of draws."""
        self._tree.set_one(transition % self.capacity, self._quota)

    def draw(
        self, batches: int, batch_size: int, oldest: int, added: int
    ) -> tuple[IntArray, FloatArray | None]:
        """See `Sampler.draw`. A transition drawn twice pays off two draws."""
        ids, leaves = self._draw(batches, batch_size, added)
        flat = leaves.ravel()
        np.subtract.at(self._tree.leaves, flat, 1.0)
        self._tree.set(flat, np.maximum(self._tree.leaves.take(flat), self._floor))
        return ids, None

    def settings(self) -> dict[str, float]:
        """See `Sampler.settings`."""
        return {"quota": self._quota, "floor": self._floor}
