"""Finds probes, calls them, times them, and keeps their state."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import numpy as np

from fog import seeding
from fog.errors import ConfigError, UserError
from fog.events import Change, EnvStep, Episode, Facts, Memory, Probe, Subject, Update
from fog.records.checkpoint import load_json, save_json
from fog.records.ledger import Ledger
from fog.records.tables import ProbeTable
from fog.settings.options import unknown

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


USUAL, OPTIONAL = "fog.probes", "fog.probes.optional"
"""Groups of entry points. `all` means the usual ones; an optional one must be named."""


@functools.cache
def available() -> dict[str, EntryPoint]:
    """Installed probes by name."""
    found = entry_points()
    return {entry.name: entry for group in (OPTIONAL, USUAL) for entry in found.select(group=group)}


def usual() -> list[str]:
    """Names of the probes that `all` means."""
    return sorted(name for name, entry in available().items() if entry.group == USUAL)


def chosen(specs: Iterable[str]) -> list[str]:
    """The probes that a `--probes` setting means: `all`, `none`, or names with options.

    An entry `name:option:other=value` gives options to a probe; beside `all` it replaces the plain
    one. `all` leaves out the optional ones, which may be named beside it: `all,curvature`.

    Raises:
        ConfigError: a name that is not installed or comes twice, or options that do not fit.
    """
    known = available()
    wanted = [spec for spec in specs if spec != "none"]
    named: dict[str, str] = {}
    for spec in wanted:
        name = spec.partition(":")[0]
        if spec == "all":
            continue
        if name not in known:
            raise unknown("probe", name, [*sorted(known), "all", "none"])
        if name in named:
            raise ConfigError(f"probes: {name} is named twice; join its options with ':'")
        if ":" in spec:
            make(_class(known[name]), spec)
        named[name] = spec
    if "all" in wanted:
        return [named.get(name, name) for name in sorted({*usual(), *named})]
    return list(named.values())


def load(specs: Iterable[str]) -> list[Probe]:
    """Make the probes that a `--probes` setting names."""
    known = available()
    return [make(_class(known[spec.partition(":")[0]]), spec) for spec in chosen(specs)]


def _class(entry: EntryPoint) -> type[Probe]:
    try:
        found: type[Probe] = entry.load()
    except Exception as error:
        raise ConfigError(
            f"probe {entry.name!r} cannot be loaded from {entry.value}: {error}; repair or "
            "uninstall its package, or leave it out"
        ) from error
    return found


def make(cls: type[Probe], spec: str) -> Probe:
    """A probe from its class and its entry in `--probes`.

    Options are keyword arguments of the constructor. The type of an option is that of its default;
    numbers of a tuple are joined with "+": `features:at=0.2+0.5:size=1000`.

    Raises:
        ConfigError: an option that the probe does not have, or a value of another type.
    """
    name, *options = spec.split(":")
    parameters = inspect.signature(cls).parameters
    values = {}
    for option in options:
        key, _, text = option.partition("=")
        if key not in parameters:
            known = ", ".join(parameters) or "none"
            raise ConfigError(f"probe {name!r} has no option {key!r}; it has: {known}")
        try:
            values[key] = _parsed(parameters[key].default, text)
        except ValueError:
            like = parameters[key].default
            raise ConfigError(f"probe {name!r}: {option!r} is not like {key}={like}") from None
    try:
        return cls(**values)
    except ValueError as error:
        raise ConfigError(f"probe {name!r}: {error}") from None


def _parsed(default: Any, text: str) -> Any:
    if isinstance(default, bool):
        if text not in ("", "true", "false"):
            raise ValueError(text)
        return text != "false"
    if isinstance(default, tuple):
        return tuple(type(default[0])(part) for part in text.split("+"))
    return type(default)(text)


class _StampedTable:
    """A probe's table, stamped with the environment step of the moment."""

    def __init__(self, table: ProbeTable, view: ProbeView) -> None:
        self._table = table
        self._view = view

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows."""
        self._table.write(self._view.env_step, columns)


@dataclass
class Progress:
    """The counters that a view shows; the trainer advances them."""

    env_step: int = 0
    updates: int = 0


class ProbeView:
    """The read-only view of one probe: shared subjects, a random stream of its own."""

    def __init__(
        self,
        facts: Facts,
        progress: Progress,
        subject: Subject,
        replay: Memory,
        rng: np.random.Generator,
        directory: Path,
        ledger: Ledger | None = None,
    ) -> None:
        self.facts = facts
        self.subject = subject
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
    """All probes of a run behind one call for each hook; hooks nobody overrides cost nothing."""

    def __init__(
        self,
        probes: list[Probe],
        facts: Facts,
        progress: Progress,
        subject: Subject,
        replay: Memory,
        directory: Path,
        ledger: Ledger | None = None,
    ) -> None:
        self._probes = {probe.name: probe for probe in probes}
        self._views = {
            name: ProbeView(
                facts,
                progress,
                subject,
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
            # Checkpoints of earlier versions do not know it.
            self.seconds[name] = document.get("seconds", 0.0)
