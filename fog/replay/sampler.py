"""What a sampler is, and the simplest one.

A sampler chooses transition ids; it never sees observations. `oldest` and `added` bound the stored
ids: `oldest <= id < added`. Draws are independent, with replacement, from the law that
`probabilities` states, which is what the tests check them against.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fog.replay.batch import FloatArray
from fog.replay.storage import IntArray
from fog.seeding import get_state, set_state

Probabilities = NDArray[np.float64]


class Sampler(ABC):
    """Base class of all samplers."""

    name: ClassVar[str]
    feedback: ClassVar[bool] = False
    """True if a draw depends on earlier draws: then draw one batch per update."""
    capacity: int | None = None
    """Capacity of the replay it was built for, if it keeps something per transition."""

    def __init__(self, rng: np.random.Generator) -> None:
        """Keep the replay's own random stream, for example `fog.seeding.generator(0, "replay")`."""
        self.rng = rng

    @abstractmethod
    def draw(
        self, batches: int, batch_size: int, oldest: int, added: int
    ) -> tuple[IntArray, FloatArray | None]:
        """Draw (batches, batch_size) ids; importance weights alike, or None if all are 1."""

    @abstractmethod
    def probabilities(self, oldest: int, added: int) -> Probabilities:
        """The exact law of the next draw over ids `oldest .. added - 1`, in O(n): for checks."""

    def add(self, transition: int) -> None:  # noqa: B027 - most samplers need no notice
        """Take notice of a new transition."""

    def update(self, ids: IntArray, td_errors: NDArray[Any], oldest: int) -> None:  # noqa: B027
        """Take notice of the critic's TD errors of drawn transitions."""

    def settings(self) -> dict[str, float]:
        """The numbers that define the law; a checkpoint restores only into equal ones."""
        return {}

    def scalars(self) -> dict[str, Any]:
        """Plain data that a checkpoint must carry."""
        return {"rng": get_state(self.rng)}

    def array(self, oldest: int, added: int) -> NDArray[np.float64] | None:
        """One number per stored transition that a checkpoint must carry, or None."""
        return None

    def restore(
        self, scalars: dict[str, Any], array: NDArray[np.float64] | None, oldest: int, added: int
    ) -> None:
        """Go on from `scalars` and `array` as they were saved."""
        set_state(self.rng, scalars["rng"])


class UniformSampler(Sampler):
    """Every stored transition is equally likely."""

    name = "uniform"

    def draw(
        self, batches: int, batch_size: int, oldest: int, added: int
    ) -> tuple[IntArray, FloatArray | None]:
        """See `Sampler.draw`."""
        return self.rng.integers(oldest, added, (batches, batch_size)), None

    def probabilities(self, oldest: int, added: int) -> Probabilities:
        """1 / size for each."""
        size = added - oldest
        return np.full(size, 1.0 / size)


class AgeLaw(Protocol):
    """A weight that depends on the age of a transition alone, in environment steps."""

    def weights(self, ages: IntArray) -> NDArray[np.float64]:
        """The weight of each age."""

    def ages(self, uniforms: NDArray[np.float64], n: int) -> IntArray:
        """Uniforms on [0, 1), which may be overwritten, to ages in a buffer of n transitions."""


class AgeSampler(Sampler):
    """Draws transition i of a buffer with `added` additions by its age `added - 1 - i`."""

    def __init__(self, rng: np.random.Generator, law: AgeLaw, settings: dict[str, float]) -> None:
        """`settings` are those of the law."""
        super().__init__(rng)
        self.law = law
        self._settings = settings

    def draw(
        self, batches: int, batch_size: int, oldest: int, added: int
    ) -> tuple[IntArray, FloatArray | None]:
        """See `Sampler.draw`."""
        # Flat until the end: numpy's loops are faster over one dimension than over two.
        ages = self.law.ages(self.rng.random(batches * batch_size), added - oldest)
        return np.subtract(added - 1, ages, out=ages).reshape(batches, batch_size), None

    def probabilities(self, oldest: int, added: int) -> Probabilities:
        """The weights over their sum, weight by weight."""
        weights = self.law.weights(np.arange(added - oldest - 1, -1, -1))
        return np.asarray(weights / weights.sum())

    def settings(self) -> dict[str, float]:
        """See `Sampler.settings`."""
        return self._settings
