"""Plans as YAML files, and those that come with this package.

name: motivating_example
scale: 1
tasks: [humanoid-walk, HalfCheetah-v4]
variants: [sac, sac-reset]
seeds: 0-2
settings: {probes: all}
runs:                       # optional: blocks that differ; each inherits what it leaves out
  - variants: [sac]
  - tasks: [suite:mujoco]
    settings: {width: 128}
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fog.errors import ConfigError
from fog.settings import config_file
from fog.settings.config import GROUPS, group_of
from fog.settings.options import hints, unknown
from fog.sweep.plan import Block, Plan, seed_numbers, task_names, variant_names
from fog.system.text import shown

_BLOCK_KEYS = ("tasks", "variants", "seeds", "settings")
_PLAN_KEYS = ("name", "scale", *_BLOCK_KEYS, "runs")
_NAMED = {"task": "tasks", "variant": "variants", "seed": "seeds", "scale": "scale"}
_HOMES = (
    Path(__file__).parent.parent / "_plans",  # an installed wheel; a checkout has none
    Path(__file__).parent.parent.parent / "plans",
)


def known() -> dict[str, Path]:
    """The plans that come with this package: `motivating_example`, `miniature/main_dmc`, ..."""
    home = next((home for home in _HOMES if home.is_dir()), None)
    found = sorted(home.rglob("*.yaml")) if home else []
    return {path.relative_to(home).with_suffix("").as_posix(): path for path in found if home}


def read(path: Path) -> Plan:
    """The plan in a YAML file, or the one of that name that comes with this package.

    Raises:
        ConfigError: the file cannot be read, or something in it is misspelt; names the file.
    """
    if not path.suffix and not path.exists():
        if str(path) not in known():
            raise unknown("plan", str(path), known())
        path = known()[str(path)]
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read plan {path}: {_reason(error)}") from None
    document = config_file.load_yaml(text, str(path))
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: expected a plan: {', '.join(_PLAN_KEYS)}")
    try:
        return _plan(document, path)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _plan(document: dict[str, Any], path: Path) -> Plan:
    _check_keys(document, _PLAN_KEYS)
    shared = _block({key: document[key] for key in _BLOCK_KEYS if key in document}, Block())
    parts = document.get("runs", [{}])
    if not isinstance(parts, list) or not parts or not all(isinstance(p, dict) for p in parts):
        raise ConfigError("runs: expected a list of blocks, each with tasks, variants, seeds")
    blocks = []
    for number, part in enumerate(parts, start=1):
        try:
            _check_keys(part, _BLOCK_KEYS)
            blocks.append(_block(part, shared))
            if not blocks[-1].tasks:
                raise ConfigError("no tasks given, for example tasks: [cartpole-swingup]")
        except ConfigError as error:
            where = f"block {number}: " if len(parts) > 1 else ""
            raise ConfigError(f"{where}{error}") from None
    scale = document.get("scale", 1.0)
    if isinstance(scale, bool) or not isinstance(scale, int | float):
        raise ConfigError(f"scale: expected number, got {shown(scale)}")
    return Plan(str(document.get("name", path.stem)), tuple(blocks), float(scale), str(path))


def _check_keys(mapping: Mapping[Any, Any], keys: Sequence[str]) -> None:
    for key in mapping:
        if key in keys:
            continue
        if key in _NAMED and _NAMED[key] in keys:
            raise ConfigError(f"{key}: in a plan it is {_NAMED[key]}")
        if key in group_of():
            raise ConfigError(f"{key} belongs below settings:")
        raise unknown("key", key, keys)


def _block(part: Mapping[str, Any], base: Block) -> Block:
    """A block, with what it leaves out taken from `base`; settings are laid over each other."""
    given: dict[str, Any] = {}
    if "tasks" in part:
        given["tasks"] = task_names(_texts("tasks", part["tasks"]))
    if "variants" in part:
        given["variants"] = variant_names(_texts("variants", part["variants"]))
    if "seeds" in part:
        seeds = part["seeds"]
        given["seeds"] = seed_numbers(seeds if isinstance(seeds, list) else [seeds])
    if "settings" in part:
        given["settings"] = {**base.settings, **_settings(part["settings"])}
    return replace(base, **given)


def _texts(key: str, value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value]
    if not items or not all(isinstance(item, str) for item in items):
        raise ConfigError(f"{key}: expected a list of names, got {shown(value)}")
    return items


def _settings(values: Any) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise ConfigError(f"settings: expected names and values, got {shown(values)}")
    settings: dict[str, Any] = {}
    for name, value in values.items():
        if name in _NAMED:
            raise ConfigError(f"settings: {name} stands beside settings, as {_NAMED[name]}")
        if name not in group_of():
            raise ConfigError(f"settings: {unknown('setting', name, group_of())}")
        is_list = typing.get_origin(hints(GROUPS[group_of()[name]])[name]) is tuple
        if is_list and not isinstance(value, list):
            value = [] if value in (None, "none") else [value]
        settings[name] = value
    return settings
