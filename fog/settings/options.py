"""Typed, documented, bounded dataclass fields: the mechanism behind `fog.settings.config`.

One declaration per setting serves validation, YAML and the command line, so the three cannot
disagree. A field is declared with `option(default, help, bounds)`; `check` enforces the types and
bounds when the dataclass is constructed.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import math
import operator
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from fog.errors import ConfigError
from fog.system.text import listed, shown

MOST = 10**15
"""No integer setting is larger, whatever its own bounds: estimates stay finite."""


def option(
    default: Any,
    help: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
) -> Any:
    """Declare a field with help text and bounds (`ge`: greater or equal, `gt`: greater, ...)."""
    bounds = {"ge": ge, "gt": gt, "le": le, "lt": lt}
    metadata = {"help": help, **{name: at for name, at in bounds.items() if at is not None}}
    return dataclasses.field(default=default, metadata=metadata)


_HINTS: dict[type, dict[str, Any]] = {}


def hints(cls: type) -> dict[str, Any]:
    """Resolved type of every field of a dataclass, looked up once for each class."""
    if cls not in _HINTS:
        _HINTS[cls] = typing.get_type_hints(cls)
    return _HINTS[cls]


def describe(hint: Any) -> str:
    """A type in the words of an error message."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(str(choice) for choice in arguments)
    if origin is tuple:
        return f"a list of {describe(arguments[0])}s"
    if origin is types.UnionType:
        inner = next(kind for kind in arguments if kind is not type(None))
        return f"{describe(inner)} or none"
    return {int: "integer", float: "number", bool: "true or false", str: "text"}[hint]


def coerce(value: Any, hint: Any) -> Any:
    """The value in the type, if that loses nothing (1 -> 1.0, list -> tuple), or a TypeError."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        if value in arguments and isinstance(value, str):
            return value
    elif origin is tuple:
        if isinstance(value, list | tuple):
            return tuple(coerce(item, arguments[0]) for item in value)
    elif origin is types.UnionType:
        if value is None:
            return None
        return coerce(value, next(kind for kind in arguments if kind is not type(None)))
    elif isinstance(value, bool):
        if hint is bool:
            return value
    elif hint is float and isinstance(value, int | float):
        return value if isinstance(value, int) and abs(value) > MOST else float(value)
    elif isinstance(value, hint):
        return value
    raise TypeError


def check(instance: Any) -> None:
    """Check types and bounds of a dataclass made of `option` fields, in its `__post_init__`."""
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        hint = hints(type(instance))[field.name]
        try:
            coerced = coerce(value, hint)
        except TypeError:
            raise ConfigError(
                f"{field.name}: expected {describe(hint)}, got {shown(value)}"
            ) from None
        _check_bounds(field.name, coerced, field.metadata)
        object.__setattr__(instance, field.name, coerced)


_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "ge": (">=", operator.ge),
    "gt": (">", operator.gt),
    "le": ("<=", operator.le),
    "lt": ("<", operator.lt),
}


def _check_bounds(name: str, value: Any, metadata: Mapping[str, Any]) -> None:
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, float) and not math.isfinite(item):
            raise ConfigError(f"{name}: must be finite, got {item}")
        if not isinstance(item, int | float):
            continue
        if isinstance(item, int) and abs(item) > MOST:
            raise ConfigError(f"{name}: must be a number up to {MOST:g}, got {shown(item)}")
        rules = [
            (sign, holds, metadata[key])
            for key, (sign, holds) in _BOUNDS.items()
            if key in metadata
        ]
        if not all(holds(item, at) for _, holds, at in rules):
            wanted = " and ".join(f"{sign} {at:g}" for sign, _, at in rules)
            raise ConfigError(f"{name}: must be {wanted}, got {shown(item)}")


def check_increasing(name: str, values: tuple[int, ...]) -> None:
    """Check that a schedule is sorted and free of repeats."""
    if any(later <= earlier for earlier, later in itertools.pairwise(values)):
        raise ConfigError(f"{name}: must be strictly increasing, got {shown(list(values))}")


def unknown(kind: str, name: object, known: Iterable[str]) -> ConfigError:
    """The error for a name that does not exist, with the nearest one that does."""
    # Without the dashes, which all flags share: --foo is not near --json.
    bare = {item.lstrip("-"): item for item in known}
    near = difflib.get_close_matches(str(name).lstrip("-"), list(bare), n=1, cutoff=0.6)
    hint = f"did you mean {bare[near[0]]!r}?" if near else f"known: {listed(list(bare.values()))}"
    return ConfigError(f"unknown {kind} {shown(name)}: {hint}")
