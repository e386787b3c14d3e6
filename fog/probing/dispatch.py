"""Calls probes, times them, and keeps their state."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fog import seeding
from fog.errors import UserError
from fog.events import Change, EnvStep, Episode, Facts, Memory, ObservedAgent, Probe, Update
from fog.records.checkpoint import load_json, save_json
from fog.records.ledger import Ledger
from fog.records.tables import ProbeTable

HOOKS = (
    "on_start",
    "on_env_step",
    "on_update",
    "on_change",
    "on_evaluation",
    "on_window",
    "on_end",
)


class ProbeError(UserError):
    """A probe failed. The run stops, because a silently missing column would cost a sweep."""

    exit_code = 1


class _StampedTable:
    """A probe's table, stamped with the current environment step."""

    def __init__(self, table: ProbeTable, view: ProbeView) -> None:
        self._table = table
        self._view = view

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows."""
        self._table.write(self._view.env_step, columns)


@dataclass
class Counters:
    """The counters that a view shows; the trainer advances them."""

    env_step: int = 0
    updates: int = 0


class ProbeView:
    """The read-only view of one probe: a shared agent and replay, and its own random stream."""

    def __init__(
        self,
        facts: Facts,
        progress: Counters,
        agent: ObservedAgent,
        replay: Memory,
        rng: np.random.Generator,
        directory: Path,
        ledger: Ledger | None = None,
    ) -> None:
        self.facts = facts
        self.agent = agent
        self.replay = replay
        self.rng = rng
        self._progress = progress
        self._directory = directory
        self._ledger = ledger

    @property
    def env_step(self) -> int:
        """Environment steps so far."""
        return self._progress.env_step

    @property
    def updates(self) -> int:
        """Gradient updates so far, over all resets."""
        return self._progress.updates

    def table(self, name: str) -> _StampedTable:
        """The table of that name in the run directory."""
        return _StampedTable(ProbeTable(self._directory, name, self._ledger), self)


class Probes:
    """All probes of a run behind one call for each hook; unused hooks cost nothing."""

    def __init__(
        self,
        probes: list[Probe],
        facts: Facts,
        progress: Counters,
        agent: ObservedAgent,
        replay: Memory,
        directory: Path,
        ledger: Ledger | None = None,
    ) -> None:
        self._probes = {probe.name: probe for probe in probes}
        self._views = {
            name: ProbeView(
                facts,
                progress,
                agent,
                replay,
                seeding.generator(facts.seed, f"probe/{name}"),
                directory,
                ledger,
            )
            for name in self._probes
        }
        self.seconds = dict.fromkeys(self._probes, 0.0)
        """Time spent in each probe since the start of the run, over all resumes."""
        self._listeners = {
            hook: [
                probe for probe in probes if getattr(type(probe), hook) is not getattr(Probe, hook)
            ]
            for hook in HOOKS
        }

    def wants(self, hook: str) -> bool:
        """Whether any probe overrides the hook: evaluations are recorded only if one asks."""
        return bool(self._listeners[hook])

    def _call(self, hook: str, *event: Any) -> None:
        for probe in self._listeners[hook]:
            began = time.perf_counter()
            try:
                getattr(probe, hook)(self._views[probe.name], *event)
            except Exception as error:
                if hook == "on_start" and isinstance(error, ValueError | UserError):
                    raise UserError(f"probe {probe.name!r}: {error}") from None
                cause = f"{type(error).__name__}: {error}"
                raise ProbeError(f"probe {probe.name!r} failed in {hook}: {cause}") from error
            self.seconds[probe.name] += time.perf_counter() - began

    def start(self) -> None:
        """Training starts or resumes."""
        self._call("on_start")

    def env_step(self, event: EnvStep) -> None:
        """A transition was added."""
        self._call("on_env_step", event)

    def update(self, event: Update) -> None:
        """Updates were made."""
        self._call("on_update", event)

    def change(self, event: Change) -> None:
        """Networks are about to change, or have changed."""
        self._call("on_change", event)

    def evaluation(self, episodes: list[Episode]) -> None:
        """An evaluation ended."""
        self._call("on_evaluation", episodes)

    def window(self) -> None:
        """A window ended."""
        self._call("on_window")

    def end(self) -> None:
        """Training is over."""
        self._call("on_end")

    def save(self, directory: Path) -> None:
        """Write every probe's random stream, state and time spent into a checkpoint."""
        for name, probe in self._probes.items():
            home = directory / name
            home.mkdir(parents=True)
            state = probe.state()
            arrays = {key: at for key, at in state.items() if isinstance(at, np.ndarray)}
            plain = {key: at for key, at in state.items() if key not in arrays}
            rng = seeding.get_state(self._views[name].rng)
            spent = self.seconds[name]
            save_json(home / "state.json", {"rng": rng, "plain": plain, "seconds": spent})
            np.savez(home / "arrays.npz", allow_pickle=False, **arrays)

    def load(self, directory: Path) -> None:
        """Restore what `save` wrote. A probe that was not attached then starts afresh."""
        for name, probe in self._probes.items():
            home = directory / name
            if not home.is_dir():
                continue
            document = load_json(home / "state.json")
            with np.load(home / "arrays.npz", allow_pickle=False) as arrays:
                probe.load_state(document["plain"] | dict(arrays))
            seeding.set_state(self._views[name].rng, document["rng"])
            # Checkpoints of earlier versions do not have it.
            self.seconds[name] = document.get("seconds", 0.0)
