"""Checkpoints: complete, atomic, verified on reading, free of pickled code.

    checkpoint/<env step>/
        SEAL.json     format version, and size and CRC-32 of every other file; written last
        state.json    counters, random streams, positions in the CSV tables
        agent.pt      tensors only
        replay/       arrays, see fog.replay
        probes/       one folder for each probe that keeps state

A checkpoint is assembled under a temporary name and renamed when it is complete. The one before it
is kept until the next one is complete, so that there is always a good one to fall back to.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fog.errors import UserError
from fog.records.ledger import fingerprint, flush
from fog.system.text import shown

if TYPE_CHECKING:
    import torch

FORMAT = 1
KEPT = 2
AGENT = "agent.pt"
STATE = "state.json"
_SEAL = "SEAL.json"
_NAME = re.compile(r"[0-9]{12}")

Warn = Callable[[str], None]


def write(root: Path, env_step: int, fill: Callable[[Path], None]) -> Path:
    """Write a checkpoint: `fill` puts its files into the directory it is given.

    If the disk is full or cannot be written, earlier checkpoints are untouched.
    """
    final, partial = root / f"{env_step:012d}", root / f"partial-{env_step:012d}"
    replaced = partial.with_name(f"{partial.name}-replaced")
    try:
        root.mkdir(parents=True, exist_ok=True)
        for leftover in root.glob("partial-*"):
            shutil.rmtree(leftover)
        partial.mkdir()
        fill(partial)
        files = sorted(path for path in partial.rglob("*") if path.is_file())
        sealed = {str(path.relative_to(partial)): fingerprint(path) for path in files}
        seal = partial / _SEAL
        seal.write_text(json.dumps({"format": FORMAT, "env_step": env_step, "files": sealed}))
        for path in (*files, seal):
            flush(path)
        if final.exists():
            # Of the same step, taken between its updates. Never half deleted under its own name.
            final.rename(replaced)
        partial.rename(final)
        flush(root)
        shutil.rmtree(replaced, ignore_errors=True)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if replaced.exists() and not final.exists():
            replaced.rename(final)
        if isinstance(error, OSError):
            raise UserError(f"cannot write checkpoint {final}: {error}") from None
        raise
    for old in candidates(root)[KEPT:]:
        shutil.rmtree(old)
    return final


def candidates(root: Path) -> list[Path]:
    """Complete-looking checkpoints, newest first."""
    if not root.is_dir():
        return []
    return sorted((path for path in root.iterdir() if _NAME.fullmatch(path.name)), reverse=True)


def newest_valid(
    root: Path, warn: Warn, misfit: Callable[[Path], str | None] | None = None
) -> Path | None:
    """The newest checkpoint that verifies; `warn` gets one line for each one refused.

    `misfit` returns any other reason against an undamaged checkpoint. None if there is no
    checkpoint at all; that every one is refused is an error.
    """
    reasons = []
    for path in candidates(root):
        problem = verify(path)
        if problem is None and misfit is not None:
            problem = misfit(path)
        if problem is None:
            return path
        reasons.append(f"checkpoint {path.name} is refused: {problem}")
        warn(f"checkpoint {path} is refused: {problem}")
    if reasons:
        raise UserError(
            f"no usable checkpoint in {root}: {'; '.join(reasons)}. Put the file back from a copy, "
            "or start the run again in another folder"
        )
    return None


def forget_newer(home: Path) -> None:
    """Delete the checkpoints after `home`, which were refused when a run fell back to it.

    With their higher step they would count as the newest and be kept instead of good ones.
    """
    for later in candidates(home.parent):
        if later.name > home.name:
            shutil.rmtree(later)


def verify(path: Path) -> str | None:
    """What is wrong with a checkpoint, or None."""
    try:
        seal = json.loads((path / _SEAL).read_text())
    except (OSError, ValueError, RecursionError):
        return "its seal is missing or damaged"
    if not isinstance(seal, dict):
        return "its seal is missing or damaged"
    if seal.get("format") != FORMAT:
        return f"it has format {shown(seal.get('format'))}, this version reads {FORMAT}"
    files = seal.get("files")
    if not isinstance(files, dict) or not all(_is_fingerprint(at) for at in files.values()):
        return "its seal is missing or damaged"
    for name, expected in files.items():
        file = path / name
        if not file.is_file():
            return f"{name} is missing"
        if file.stat().st_size != expected["bytes"]:
            return f"{name} is truncated"
        if fingerprint(file)["crc32"] != expected["crc32"]:
            return f"{name} is damaged"
    return None


def _is_fingerprint(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.keys() >= {"bytes", "crc32"}


def save_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write tensors by name."""
    import torch

    # Given a file or a path, torch hides a full disk behind an error about positions in a stream.
    buffer = io.BytesIO()
    torch.save(dict(tensors), buffer)
    path.write_bytes(buffer.getbuffer())


def load_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read what `save_tensors` wrote, onto the CPU; the file cannot run code."""
    import torch

    tensors: dict[str, torch.Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return tensors


def save_json(path: Path, document: Any) -> None:
    """Write plain data."""
    path.write_text(json.dumps(document))


def load_json(path: Path) -> Any:
    """Read what `save_json` wrote."""
    return json.loads(path.read_text())
