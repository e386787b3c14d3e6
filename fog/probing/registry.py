"""Finds probes by entry point, and makes them from what `--probes` says."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from fog.errors import ConfigError
from fog.events import Probe
from fog.settings.options import unknown

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
            raise ConfigError(f"probes: {name} appears twice; join its options with ':'")
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
