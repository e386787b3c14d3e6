"""How often each transition has been drawn, for ever, by transition id."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fog.replay.storage import IntArray

CountArray = NDArray[np.int32]

# Of the array's own type: numpy's `add.at` is ten times slower when it has to convert.
_ONE = np.int32(1)


class Counts:
    """One integer per transition ever added; it outlives the transition's eviction."""

    def __init__(self) -> None:
        """Start without transitions."""
        self._counts: CountArray = np.zeros(1024, dtype=np.int32)
        self._added = 0

    def reserve(self, added: int) -> None:
        """Make room for the first `added` transitions; the array grows by doubling."""
        if added > len(self._counts):
            grown = np.zeros(max(added, 2 * len(self._counts)), dtype=np.int32)
            grown[: self._added] = self._counts[: self._added]
            self._counts = grown
        self._added = added

    def record(self, ids: IntArray) -> None:
        """Count one draw of each of `ids`; repeated ids count as often as they occur."""
        np.add.at(self._counts, ids.ravel(), _ONE)

    @property
    def values(self) -> CountArray:
        """Read-only view of length `added`."""
        view = self._counts[: self._added]
        view.flags.writeable = False
        return view

    def restore(self, values: CountArray) -> None:
        """Go on from saved counts."""
        self._added = 0
        self.reserve(len(values))
        self._counts[: len(values)] = values
        self._counts[len(values) :] = 0
