"""Configs as YAML: what a run directory keeps and what `fog train --config` reads."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import yaml

from fog.config import GROUPS, Config
from fog.errors import ConfigError
from fog.options import unknown


class _Loader(yaml.SafeLoader):
    """YAML 1.1 reads `1e-5` as text; people who write settings mean the number.

    It also takes the last of two equal keys, and so loses what stood under the first.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping, if no key stands in it twice."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(f"{key.value!r} stands here twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


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
    """The config as YAML, grouped as in `fog.config`. `from_yaml` gives back an equal config."""
    return yaml.dump(dataclasses.asdict(config), Dumper=_Dumper, sort_keys=False)


def from_yaml(text: str, source: str = "config") -> Config:
    """The config written by `to_yaml`; settings left out keep their defaults."""
    return Config.from_flat(settings_from_yaml(text, source))


def settings_from_yaml(text: str, source: str = "config") -> dict[str, Any]:
    """The settings a YAML file names, by bare name.

    Raises:
        ConfigError: the text is not YAML, or names a group or setting that does not exist.
    """
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
            raise ConfigError(f"{source}: {group}: expected settings below it, got {values!r}")
        names = [item.name for item in dataclasses.fields(GROUPS[group])]
        for name in values:
            if name not in names:
                raise ConfigError(f"{source}: {unknown(f'setting in {group}', name, names)}")
        settings.update(values)
    return settings


def load_yaml(text: str, source: str) -> Any:
    """What a YAML text of settings holds.

    Raises:
        ConfigError: the text is not YAML, or a key stands twice in one place.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{source}: not valid YAML: {reason}") from None


def _misplaced(source: str, name: object) -> ConfigError:
    for group, cls in GROUPS.items():
        if name in {item.name for item in dataclasses.fields(cls)}:
            return ConfigError(f"{source}: {name} belongs below {group}:")
    return ConfigError(f"{source}: {unknown('group', name, GROUPS)}")


def read_settings(path: Path) -> dict[str, Any]:
    """The settings a YAML file on disk names.

    Raises:
        ConfigError: the file cannot be read, or is not a config.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read config {path}: {error}") from None
    return settings_from_yaml(text, str(path))
