"""Configs as YAML: what a run directory keeps and what `fog train --config` reads."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import yaml

from fog.errors import ConfigError
from fog.settings.config import GROUPS, Config
from fog.settings.options import MOST, unknown
from fog.system.text import shown


class _Loader(yaml.SafeLoader):
    """YAML 1.1 reads `1e-5` as text; in settings it means the number.

    It also takes the last of two equal keys and so loses the value of the first. And it reads
    `2026-01-01` as a date, which no setting is.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping, if its keys are names and none appears twice."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError("a list or a mapping cannot be a name", key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(f"{shown(key.value)} appears twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_TAG = "tag:yaml.org,2002:"
_KINDS = ("null", "bool", "int", "float", "str", "seq", "map")
"""What a setting can be. Other tags are refused, also those that PyYAML would take."""
_Loader.yaml_constructors = {
    tag: construct
    for tag, construct in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.removeprefix(_TAG) in _KINDS
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag != f"{_TAG}timestamp"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _refusing(kind: str, construct: Any) -> Any:
    """The constructor of a kind of scalar, with an error that says where a bad value is."""

    def constructed(loader: _Loader, node: yaml.ScalarNode) -> Any:
        try:
            value = construct(loader, node)
        except (ValueError, KeyError, IndexError):
            raise yaml.MarkedYAMLError(
                f"{shown(node.value)} is not a valid {kind}", node.start_mark
            ) from None
        if isinstance(value, int) and abs(value) > MOST:
            raise yaml.MarkedYAMLError(f"{shown(node.value)} is too large", node.start_mark)
        return value

    return constructed


for _kind in ("bool", "int", "float"):
    _Loader.add_constructor(
        _TAG + _kind, _refusing(_kind, yaml.SafeLoader.yaml_constructors[_TAG + _kind])
    )
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d[\d_]*(\.[\d_]*)?|\.\d[\d_]*)[eE][-+]?\d+$"),
    list("-+0123456789."),
)


class _Dumper(yaml.SafeDumper):
    """Lists of numbers on one line, which is how schedules are read."""


_Dumper.add_representer(
    tuple,
    lambda dumper, items: dumper.represent_sequence(
        "tag:yaml.org,2002:seq", list(items), flow_style=True
    ),
)


def to_yaml(config: Config) -> str:
    """The config as YAML, grouped as its dataclasses; `from_yaml` gives back an equal config."""
    return yaml.dump(dataclasses.asdict(config), Dumper=_Dumper, sort_keys=False)


def from_yaml(text: str, source: str = "config") -> Config:
    """The config written by `to_yaml`; settings left out keep their defaults."""
    return Config.from_flat(settings_from_yaml(text, source))


def settings_from_yaml(text: str, source: str = "config") -> dict[str, Any]:
    """The settings a YAML file names, by bare name."""
    document = load_yaml(text, source)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{source}: expected groups of settings ({', '.join(GROUPS)})")
    settings: dict[str, Any] = {}
    for group, values in document.items():
        if group not in GROUPS:
            raise _misplaced(source, group)
        if not isinstance(values, dict):
            raise ConfigError(f"{source}: {group}: expected settings below it, got {shown(values)}")
        names = [item.name for item in dataclasses.fields(GROUPS[group])]
        for name in values:
            if name not in names:
                raise ConfigError(f"{source}: {unknown(f'setting in {group}', name, names)}")
        settings.update(values)
    return settings


def load_yaml(text: str, source: str) -> Any:
    """What a YAML text of settings holds; no key may appear twice in one mapping."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{source}: not valid YAML: {reason}") from None
    except RecursionError:
        raise ConfigError(f"{source}: not a config: nested too deeply") from None


def _misplaced(source: str, name: object) -> ConfigError:
    for group, cls in GROUPS.items():
        if name in {item.name for item in dataclasses.fields(cls)}:
            return ConfigError(f"{source}: {name} belongs below {group}:")
    return ConfigError(f"{source}: {unknown('group', name, GROUPS)}")


def read_settings(path: Path) -> dict[str, Any]:
    """The settings a YAML file on disk names."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read config {path}: {error}") from None
    return settings_from_yaml(text, str(path))
