"""Join the parts of each probe table of an ended run into one file, and split it again.

During training each measurement is a separate file, so that a kill loses none. Hundreds of runs
with hundreds of small files each take minutes to read, so a run that ends joins them:

1. `joined.partial` is written, flushed and read back, then renamed to `joined.parquet`. It names
   the parts that it holds, and readers of the table skip these from then on.
2. The parts are deleted.

A kill at any moment leaves every row in at least one of the two. Checkpoints know only parts. A run
that continues (it was killed here, or diverged and is resumed from an earlier checkpoint) first
splits the tables; the same rows give the same bytes, so the checkpoint's checksums hold.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from fog.errors import UserError
from fog.records.ledger import JOINED, Fingerprint, fingerprint, flush, is_part
from fog.records.tables import encoding, part_bytes

PARTS_KEY = b"fog.parts"
"""Metadata of a joined file: names and lengths of its parts, as JSON."""

GROUP_BYTES = 1 << 22
"""Parts are gathered to row groups of about this size in memory, so that some can be read alone."""

Record = dict[str, dict[str, Any]]
"""Size and checksum of files; of a joined one also `groups`: [first byte, length, CRC-32]."""


class _ChangedError(Exception):
    """A part is damaged, has other columns than the first, or could not be restored.

    The last case is a part of an earlier version of this code or of pyarrow.
    """


class _UnreadableError(Exception):
    """A joined file is damaged."""


def join(run: Path, written: Mapping[str, Fingerprint]) -> Record:
    """Join the parts of every probe table of a run that has ended; the caller holds its lock.

    A table stays as it is if its parts do not fit together, are not what the ledger says was
    written, or could not be restored bit for bit; or if the disk is full. Returns the files that
    the run consists of now, with the checksums of what was written.
    """
    record: Record = {name: dict(known) for name, known in written.items()}
    tables: dict[str, list[str]] = {}
    for name in sorted(written):
        if is_part(Path(name).name):
            tables.setdefault(str(Path(name).parent), []).append(name)
    for folder, parts in tables.items():
        if len(parts) < 2:
            continue
        partial = run / folder / "joined.partial"
        try:
            joined = _write(run, parts, written, partial)
            partial.replace(partial.with_name(JOINED))
            flush(run / folder)
        except (OSError, _ChangedError):
            partial.unlink(missing_ok=True)
            continue
        record[f"{folder}/{JOINED}"] = joined
        for name in parts:
            (run / name).unlink()
            del record[name]
    return record


def _write(
    run: Path, parts: list[str], written: Mapping[str, Fingerprint], partial: Path
) -> dict[str, Any]:
    """Write the joined file, and see that it can be read back."""
    import pyarrow
    import pyarrow.parquet

    first = pyarrow.parquet.read_schema(run / parts[0])
    rows: list[tuple[str, int]] = []
    with partial.open("wb") as file:
        sink = _Sink(file)
        groups = []
        with pyarrow.parquet.ParquetWriter(sink, first, **encoding(first)) as writer:
            for batch in _batches(run, parts, written, first):
                rows += [(name, len(table)) for name, table in batch]
                whole = pyarrow.concat_tables([table for _, table in batch])
                # Each column in one piece, or every part would get separate pages.
                writer.write_table(whole.combine_chunks(), row_group_size=max(1, len(whole)))
                groups.append(sink.take())
            listed = json.dumps([(Path(name).name, length) for name, length in rows])
            writer.add_key_value_metadata({PARTS_KEY.decode(): listed})
        groups.append(sink.take())
        file.flush()
        os.fsync(file.fileno())
    known: Fingerprint = {"bytes": sink.at, "crc32": sink.crc32}
    if fingerprint(partial, sink.at + 1) != known:
        raise OSError(f"{partial} was not written as it should be")
    return {**known, "groups": groups}


def _batches(
    run: Path, parts: list[str], written: Mapping[str, Fingerprint], schema: Any
) -> Iterator[list[tuple[str, Any]]]:
    """The parts in order, some at a time, as they were written."""
    import pyarrow
    import pyarrow.parquet

    batch: list[tuple[str, Any]] = []
    size = 0
    for name in parts:
        data = (run / name).read_bytes()
        if {"bytes": len(data), "crc32": zlib.crc32(data)} != written[name]:
            raise _ChangedError(name)
        table = pyarrow.parquet.read_table(pyarrow.BufferReader(data), use_threads=False)
        if not table.schema.equals(schema, check_metadata=True) or part_bytes(table) != data:
            raise _ChangedError(name)
        batch.append((name, table))
        size += table.nbytes
        if size >= GROUP_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Sink:
    """A file to write to that keeps the checksums of what it was given."""

    def __init__(self, file: BinaryIO) -> None:
        self.at = 0
        self.crc32 = 0
        self.closed = False
        self._file = file
        self._begin = (0, 0)

    def write(self, data: Any) -> int:
        """Write and sum up."""
        view = memoryview(data)
        self._file.write(view)
        self.crc32 = zlib.crc32(view, self.crc32)
        start, checksum = self._begin
        self._begin = start, zlib.crc32(view, checksum)
        self.at += view.nbytes
        return view.nbytes

    def take(self) -> list[int]:
        """First byte, length and checksum of what came since the last call."""
        start, checksum = self._begin
        self._begin = self.at, 0
        return [start, self.at - start, checksum]

    def flush(self) -> None:
        """Nothing: the file is flushed when it is complete."""

    def close(self) -> None:
        """Nothing: the owner of the file closes it."""


def split(run: Path) -> None:
    """Split the joined tables of a run, so that a checkpoint finds the parts it knows.

    One that cannot be read stays; the checkpoint will then miss its parts and be refused.
    """
    for joined in sorted((run / "probes").glob(f"*/{JOINED}")):
        try:
            for name, data in _parts_of(joined):
                _restore(joined.with_name(name), data)
            flush(joined.parent)
            joined.unlink()
        except _UnreadableError:
            continue
    for leftover in (run / "probes").glob("*/joined.partial"):
        leftover.unlink()


def _restore(path: Path, data: bytes) -> None:
    if path.exists():
        return
    partial = path.with_suffix(".partial")
    try:
        partial.write_bytes(data)
        flush(partial)
        partial.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def _parts_of(joined: Path) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of the parts that a joined file holds, if it is undamaged."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(joined, page_checksum_verification=True) as file:
            described = dict(file.schema_arrow.metadata)
            lengths = iter(json.loads(file.metadata.metadata[PARTS_KEY]))
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, use_threads=False)
                table = table.replace_schema_metadata(described)
                at = 0
                while at < len(table):
                    name, length = next(lengths, ("", 0))
                    if not is_part(name) or not 0 < length <= len(table) - at:
                        raise ValueError(f"{joined} names a part that it cannot hold")
                    yield name, part_bytes(table.slice(at, length).combine_chunks())
                    at += length
    except (OSError, pyarrow.ArrowException, ValueError, TypeError, KeyError) as error:
        raise _UnreadableError(joined) from error


def conclude(run: Path, written: Mapping[str, Fingerprint]) -> Record:
    """`join`, with everything on disk before the caller says that the run has ended.

    The settings are in the record too: they decide how the tables are read.
    """
    record = join(run, written)
    record["config.yaml"] = dict(fingerprint(run / "config.yaml"))
    for name in record:
        # A file that is gone or cannot be flushed is noticed when it is compared with the record.
        with suppress(OSError):
            flush(run / name)
    return record
