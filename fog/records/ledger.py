"""What a run has written to its tables, so that a checkpoint knows exactly what it continues.

A checkpoint continues tables that lie outside it, so it stores the size and CRC-32 of each: of a
CSV table up to its last row, of a Parquet part as a whole. The checksums cover what was written,
not what is read back, so any change to a file in between is detected.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fog.errors import UserError

Fingerprint = dict[str, int]
"""`bytes` and `crc32`, as in a checkpoint's seal."""

CSV_TABLES = ("evals.csv", "train.csv", "events.csv")
JOINED = "joined.parquet"
"""The file into which `fog.records.joining` joins the parts of a table, which it then replaces."""

_PART = re.compile(r"^(\d{12})-\d+\.(parquet|partial)$")


class Ledger:
    """Size and checksum of every table file of a run, by its path below the run directory."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.files: dict[str, Fingerprint] = {}
        self._unsynced: set[str] = set()

    def extend(self, path: Path, data: bytes) -> None:
        """Note that `data` was appended to a file."""
        name = self._name(path)
        known = self.files.get(name, {"bytes": 0, "crc32": 0})
        checksum = zlib.crc32(data, known["crc32"])
        self.files[name] = {"bytes": known["bytes"] + len(data), "crc32": checksum}
        self._unsynced.add(name)

    def sync(self) -> dict[str, Fingerprint]:
        """Flush to disk what was written since the last call; what a checkpoint continues."""
        for name, known in self.files.items():
            path = self.run / name
            try:
                size = path.stat().st_size
                if name in self._unsynced:
                    flush(path)
            except FileNotFoundError:
                raise UserError(f"{path} was removed during training") from None
            if size != known["bytes"]:
                raise UserError(
                    f"{path} was changed by another program during training: it has "
                    f"{size} bytes, {known['bytes']} were written"
                )
        # A new file is safe when its directory is.
        for folder in {(self.run / name).parent for name in self._unsynced}:
            flush(folder)
        self._unsynced.clear()
        return dict(self.files)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a checkpoint that `misfit` accepts."""
        self.files = dict(state["tables"]) if "tables" in state else _adopted(self.run, state)

    def truncate(self, env_step: int) -> None:
        """Truncate the tables on disk to what is known: a run at `env_step`.

        If a folder has the name of a file to remove, nothing is changed and a UserError says so.
        """
        later = [
            self.run / name
            for name, step in _parts(self.run)
            if name not in self.files and (step >= env_step or name.endswith(".partial"))
        ]
        # Everything known has been found in parts, so the joined file is from a later time.
        later += (self.run / "probes").glob(f"*/{JOINED}")
        for path in later:
            if path.is_dir() and not path.is_symlink():
                raise UserError(
                    f"{path} is a folder where a run writes a file: move it away, then resume"
                )
        for name in CSV_TABLES:
            path = self.run / name
            length = self.files.get(name, {"bytes": 0})["bytes"]
            if path.exists() and path.stat().st_size > length:
                os.truncate(path, length)
        for path in later:
            path.unlink()

    def _name(self, path: Path) -> str:
        return path.relative_to(self.run).as_posix()


def misfit(run: Path, state: Mapping[str, Any]) -> str | None:
    """Why a checkpoint with this state cannot continue a run's tables; None if it can.

    Rows and parts written after it do no harm: `Ledger.truncate` removes them.
    """
    if "tables" not in state:
        return _short(run, state["offsets"])
    for name, expected in state["tables"].items():
        try:
            size = (run / name).stat().st_size
            found = fingerprint(run / name, expected["bytes"])
        except FileNotFoundError:
            joined = (run / name).with_name(JOINED)
            inside = f" and cannot be taken from {JOINED}" if joined.exists() else ""
            return f"{name} is missing{inside}"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
        if size < expected["bytes"]:
            return f"{name} is shorter than it was, {size} of {expected['bytes']} bytes"
        if found != expected or (size > expected["bytes"] and name not in CSV_TABLES):
            return f"{name} is damaged"
    for name, step in _parts(run):
        if step < state["env_step"] and name not in state["tables"] and name.endswith(".parquet"):
            return f"{name} was not written by this run"
    return None


def unverified(state: Mapping[str, Any]) -> bool:
    """Whether a checkpoint is of a version that did not store the checksums of its tables."""
    return "tables" not in state


def fingerprint(path: Path, length: int = 1 << 62) -> Fingerprint:
    """Size and checksum of a file, or of its first `length` bytes if it has more."""
    checksum, left = 0, length
    with path.open("rb") as file:
        while left and (block := file.read(min(left, 1 << 22))):
            checksum = zlib.crc32(block, checksum)
            left -= len(block)
    return {"bytes": length - left, "crc32": checksum}


def _short(run: Path, offsets: Mapping[str, int]) -> str | None:
    for name, offset in offsets.items():
        path = run / name
        if not path.exists():
            return f"{name} is missing"
        if path.stat().st_size < offset:
            return f"{name} is shorter than it was, {path.stat().st_size} of {offset} bytes"
    return None


def _adopted(run: Path, state: Mapping[str, Any]) -> dict[str, Fingerprint]:
    """The tables of an earlier version's checkpoint, as they are."""
    known = {name: fingerprint(run / name, at) for name, at in state["offsets"].items()}
    for name, step in _parts(run):
        if step <= state["env_step"] and name.endswith(".parquet"):
            known[name] = fingerprint(run / name)
    return known


def is_part(name: str) -> bool:
    """Whether a file name is that of a finished part."""
    return _PART.match(name) is not None and name.endswith(".parquet")


def _parts(run: Path) -> Iterator[tuple[str, int]]:
    """Parts of probe tables on disk, unfinished ones too, with their environment steps."""
    for path in sorted((run / "probes").glob("*/*")):
        if part := _PART.match(path.name):
            yield path.relative_to(run).as_posix(), int(part[1])


def flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest with the CRC-32 of its entries, by which the analysis sees a changed one."""
    entries = {name: value for name, value in manifest.items() if name != "seal"}
    return {**entries, "seal": zlib.crc32(json.dumps(entries, sort_keys=True).encode())}
