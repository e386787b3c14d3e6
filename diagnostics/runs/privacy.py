"""What a run says about its machine and user, and the same without it.

A manifest names the host, and command lines and paths name users and folders. A published run
should keep what produced its numbers (versions, commit, hardware, times, settings) and none of
that. Paths keep their last part: `/home/ada/runs` becomes `runs`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import yaml

_ABROAD = r"(?:file://)?(?:~[\w.-]*|\.\.(?:/\.\.)*)?/(?!/)"
"""Beginnings of paths that are not relative to the working directory."""

_WHOLE = re.compile(_ABROAD)
_QUOTED = re.compile(rf"""(?P<quote>["'`])(?P<path>{_ABROAD}[^"'`]+)(?P=quote)""")
_BARE = re.compile(rf"""(?<![\w./~])(?P<path>{_ABROAD}[^\s"'`,;:=+()]+)""")
_SETTING = re.compile(r"^(?P<name>\s*\w+: )(?P<value>\S.*)$")


def clean_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest without its host, and with no path but relative ones."""
    hardware = manifest.get("hardware")
    host = hardware.get("host") if isinstance(hardware, dict) else None
    cleaned = {name: _cleaned(value) for name, value in manifest.items()}
    if isinstance(hardware, dict):
        cleaned["hardware"] = {k: v for k, v in cleaned["hardware"].items() if k != "host"}
    if isinstance(cleaned.get("command"), list):
        cleaned["command"] = clean_command([str(word) for word in manifest["command"]])
    if host and isinstance(cleaned.get("reason"), str):
        cleaned["reason"] = re.sub(rf"\b{re.escape(str(host))}\b", "host", cleaned["reason"])
    return cleaned


def clean_command(words: list[str]) -> list[str]:
    """A command line whose program and paths are names only."""
    if not words:
        return words
    program = PurePosixPath(words[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return [name or words[0], *(_clean_word(word) for word in words[1:])]


def clean_config(text: str) -> str:
    """A config file, its other lines as they were, with no path but relative ones."""
    return "".join(_clean_line(line) for line in text.splitlines(keepends=True))


def clean_text(text: str) -> str:
    """A sentence in which every absolute path is replaced by its last part."""
    named = _QUOTED.sub(lambda m: m["quote"] + _name(m["path"]) + m["quote"], text)
    return _BARE.sub(lambda m: _name(m["path"]), named)


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cleaned(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return _clean_value(value) if isinstance(value, str) else value


def _clean_word(word: str) -> str:
    flag, equals, value = word.partition("=")
    return flag + equals + _clean_value(value) if equals else _clean_value(word)


def _clean_value(value: str) -> str:
    """Treated as one path if it begins like one, because folder names may contain spaces."""
    return _name(value) if _WHOLE.match(value) else clean_text(value)


def _clean_line(line: str) -> str:
    setting = _SETTING.match(line.rstrip("\n"))
    if setting is None:
        return clean_text(line)
    try:
        value = yaml.safe_load(setting["value"])
    except yaml.YAMLError:
        return clean_text(line)
    cleaned = _cleaned(value)
    if cleaned == value:
        return line
    shown = yaml.safe_dump(cleaned, default_flow_style=True, width=10**9).removesuffix("...\n")
    return setting["name"] + shown.rstrip("\n") + "\n"


def _name(path: str) -> str:
    return PurePosixPath(path).name or "."
