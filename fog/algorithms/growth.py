"""When critics grow: a pure function of the counters."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from fog.settings.config import Config


@dataclass(frozen=True)
class ExpansionSchedule:
    """Expansions by updates since birth or the last reset."""

    at: tuple[int, ...]
    initial_depth: int
    maximal_depth: int

    @classmethod
    def from_config(cls, config: Config) -> ExpansionSchedule:
        """The schedule of a run; entries beyond the maximal depth never happen."""
        network = config.network
        room = network.maximal_depth - network.initial_depth
        return cls(
            config.lifecycle.expansion_updates[:room],
            network.initial_depth,
            network.maximal_depth,
        )

    def depth_at(self, updates: int) -> int:
        """Depth an agent has once it has made `updates` updates since birth."""
        return self.initial_depth + bisect_right(self.at, updates)

    def updates_until(self, updates: int) -> int | None:
        """Updates left before the next expansion, or None if there is none to come."""
        index = bisect_right(self.at, updates)
        return self.at[index] - updates if index < len(self.at) else None
