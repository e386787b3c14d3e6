"""A file is replaced only by the command that wrote it."""

from __future__ import annotations

from pathlib import Path

from diagnostics.errors import AnalysisError

_BEGINNING = 4096
"""Bytes in which a file shows what it is."""


def replaceable(out: Path, mark: str, what: str) -> None:
    """Refuse to overwrite a file that is something else.

    Args:
        out: the file to write; one that is new or empty is fine.
        mark: what the beginning of an earlier one holds.
        what: such a file, in words.

    Raises:
        AnalysisError: it holds something else, or cannot be read.
    """
    if not out.is_file():
        return
    try:
        with out.open("rb") as file:
            beginning = file.read(_BEGINNING)
    except OSError as error:
        raise AnalysisError(f"cannot read {out}: {error.strerror}") from None
    if beginning and mark.encode() not in beginning:
        raise AnalysisError(f"{out} exists and is not {what}: choose another --out, or remove it")
