"""Whether the files of an ended run are still what the run wrote.

When a run ends it writes size and CRC-32 of its settings and tables into its manifest under
`files`, and the CRC-32 of the manifest's other entries under `seal` (`fog.records.joining` and
`run_directory`). An export does the same for what it writes. Runs of earlier versions have neither
and are read unchecked, as are runs that have not ended.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fog.records.ledger import sealed

LEFT_OUT = "is not what the run wrote (its checksum differs): left out"


@dataclass(frozen=True)
class Entry:
    """What a record says about one file."""

    nbytes: int
    crc32: int
    groups: tuple[tuple[int, int, int], ...] = ()
    """First byte, length and CRC-32 of each row group of a joined table; its footer is last."""


@dataclass
class Record:
    """The files of an ended run; empty where the run made no record.

    Attributes:
        entries: what was written.
        refused: files that are known to be something else by now.
    """

    entries: Mapping[str, Entry] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> tuple[Record, list[str]]:
        """The record in a manifest, and what is wrong with it."""
        files = manifest.get("files")
        if files is None:
            return cls(), []
        try:
            return cls({name: _entry(entry) for name, entry in files.items()}), []
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            return cls(), ["manifest.json: files is malformed: not checked"]

    def __bool__(self) -> bool:
        return bool(self.entries)

    def check(self, run: Path) -> list[str]:
        """What is missing, has another length than it was written with, or other settings."""
        missing, problems = [], []
        for name, entry in self.entries.items():
            try:
                found = (run / name).stat().st_size
            except (OSError, ValueError):
                missing.append(name)
                continue
            if found != entry.nbytes:
                problems.append(f"{name} has {found} bytes, {entry.nbytes} were written: left out")
                self.refused.add(name)
        self.refused.update(missing)
        if missing:
            more = f" and {len(missing) - 1} more files are" if len(missing) > 1 else " is"
            problems.insert(0, f"{missing[0]}{more} missing")
        try:
            changed = "config.yaml" not in self.refused and not self.intact(run, "config.yaml")
        except OSError:
            changed = False  # its reader says why it cannot be read
        if changed:
            problems.append("config.yaml was changed after the run ended (its checksum differs)")
        return problems

    def whole(self, name: str, raw: bytes) -> bool:
        """Whether a file's content is what was written; True if nothing is known about it."""
        entry = self.entries.get(name)
        if entry is None:
            return True
        return len(raw) == entry.nbytes and zlib.crc32(raw) == entry.crc32

    def intact(self, run: Path, name: str, groups: Sequence[int] | None = None) -> bool:
        """The same of a file on disk, or of its footer and some of its row groups."""
        entry = self.entries.get(name)
        if entry is None:
            return True
        with (run / name).open("rb") as file:
            if groups is None or not entry.groups:
                return os.fstat(file.fileno()).st_size == entry.nbytes and (
                    _crc32(file, entry.nbytes) == entry.crc32
                )
            if max(groups, default=-1) >= len(entry.groups) - 1:
                return False
            for group in (*groups, -1):
                start, length, expected = entry.groups[group]
                file.seek(start)
                if _crc32(file, length) != expected:
                    return False
        return True


def _entry(entry: Any) -> Entry:
    groups = tuple((abs(int(a)), int(b), int(c)) for a, b, c in entry.get("groups", ()))
    return Entry(int(entry["bytes"]), int(entry["crc32"]), groups)


def _crc32(file: Any, length: int) -> int:
    checksum = 0
    while length and (block := file.read(min(length, 1 << 20))):
        checksum = zlib.crc32(block, checksum)
        length -= len(block)
    return checksum


def check_manifest(manifest: Mapping[str, Any]) -> list[str]:
    """What is wrong with a manifest that has a seal."""
    if "seal" in manifest and manifest["seal"] != sealed(manifest)["seal"]:
        return ["manifest.json was changed after it was written (its checksum differs)"]
    return []
