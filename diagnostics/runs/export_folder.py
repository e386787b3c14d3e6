"""Where an export may write: a new or empty folder, or over an earlier export of the same run.

Every exported run has a marker, `export.json`, with a digest of the settings it was trained with.
A folder is replaced only if its marker names the same settings and it contains only files that an
export writes. Anything else is refused.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from diagnostics.errors import AnalysisError
from diagnostics.runs import files
from diagnostics.runs.directories import RunFiles

MARKER = "export.json"
MANIFEST = "manifest.json"
PLAIN = ("config.yaml", "evals.csv", "train.csv", "events.csv")
"""Files that are copied, except for what names the host."""

_PART = re.compile(r"probes/[^/]+/\d+-\d+\.parquet")


def check_out(source: Path, out: Path) -> None:
    """Refuse a target that is, contains or is inside the source, or that holds other files."""
    home, runs = out.resolve(), source.resolve()
    if home.is_relative_to(runs):
        raise AnalysisError(f"cannot export into {out}: it is inside {source}")
    if runs.is_relative_to(home):
        raise AnalysisError(
            f"cannot export into {out}: it contains {source}; choose another folder"
        )
    if home.exists() and not home.is_dir():
        raise AnalysisError(f"cannot export into {out}: it is not a directory")
    # Empty folders and hidden ones with a marker are what a killed export leaves.
    found = [path.name for path in home.rglob("*") if path.is_symlink() or not path.is_dir()]
    if found and MARKER not in found:
        raise AnalysisError(
            f"cannot export into {out}: it holds other files and no earlier export; "
            "choose a new or an empty folder"
        )


def check_copy(copy: Path, run: RunFiles) -> None:
    """Refuse to replace a folder that is not an earlier export of this run."""
    for folder in (copy, beside(copy, "partial"), beside(copy, "earlier")):
        if (reason := _foreign(folder, run)) is not None:
            raise AnalysisError(f"cannot export {run.path} to {folder}: {reason}")


def _foreign(folder: Path, run: RunFiles) -> str | None:
    """Why a folder may not be removed in favour of an export of `run`; None if it may."""
    if folder.resolve() != folder:
        return "a symbolic link lies in the way"
    if not folder.exists():
        return None
    if not folder.is_dir():
        return "it is a file"
    found = sorted(path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    if not found:
        return None
    if folder.name.startswith(".") and found == [folder / MARKER]:
        return None  # killed while it wrote the marker
    marker, _ = files.read_json(folder / MARKER)
    if not marker:
        return f"it is not marked as an earlier export (no {MARKER}); choose a new folder"
    # A run that lost its settings cannot be compared; its earlier copy is kept in any case.
    if run.config and marker.get("run") != digest(run):
        return "it is the export of a run with other settings; choose a new folder"
    for path in found:
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not _written(name):
            return f"it also holds {name}, which no export wrote; move it away first"
    return None


def _written(name: str) -> bool:
    return name in (*PLAIN, MANIFEST, MARKER) or _PART.fullmatch(name) is not None


def digest(run: RunFiles) -> str:
    """What identifies the run: its settings, except where it was written."""
    settings = {name: value for name, value in run.config.items() if name != "out"}
    text = json.dumps(settings, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def mark(
    folder: Path,
    run: RunFiles,
    *,
    rounded: bool,
    without: Collection[str],
    last: Collection[str],
) -> None:
    """Write the marker of an export of `run`, which says how the copy differs from the run.

    If `run` is itself an export, what it differs by is true of its copy too.
    """
    earlier, _ = files.read_json(run.path / MARKER)

    def also(name: str, chosen: Collection[str]) -> list[str]:
        told = earlier.get(name)
        return sorted({*chosen, *(map(str, told) if isinstance(told, list) else ())})

    marker = {
        "run": digest(run),
        "rounded": rounded or bool(earlier.get("rounded")),
        "without": also("without", without),
        "last": also("last", last),
    }
    (folder / MARKER).write_text(json.dumps(marker, indent=2) + "\n")


def beside(copy: Path, what: str) -> Path:
    """A hidden neighbour of a copy, which the analysis passes over."""
    return copy.with_name(f".{copy.name}.{what}")


def recover(copy: Path) -> None:
    """Restore an earlier copy that a killed export left beside its place."""
    earlier = beside(copy, "earlier")
    if earlier.exists() and not copy.exists():
        earlier.rename(copy)


def place(partial: Path, copy: Path) -> None:
    """Replace an earlier copy with a complete new one; the earlier one stays until then."""
    for path in partial.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    earlier = beside(copy, "earlier")
    if copy.exists():
        shutil.rmtree(earlier, ignore_errors=True)
        copy.rename(earlier)
    partial.rename(copy)
    shutil.rmtree(earlier, ignore_errors=True)


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Make the folder and keep a second export out of it."""
    out.mkdir(parents=True, exist_ok=True)
    handle = os.open(out, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise AnalysisError(f"cannot export into {out}: another export is running") from None
        yield
    finally:
        os.close(handle)
