"""Plain .npy files, written from and read into parts of large arrays a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fog.errors import UserError

Array = NDArray[Any]

_PIECE = 1024  # rows, some hundred kilobytes


def write(path: Path, parts: Sequence[Array]) -> None:
    """Write the concatenation of `parts` (at least one) as one .npy file."""
    first = parts[0]
    header = {
        "descr": np.lib.format.dtype_to_descr(first.dtype),
        "fortran_order": False,
        "shape": (sum(len(part) for part in parts), *first.shape[1:]),
    }
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            for piece in _pieces(part):
                file.write(np.ascontiguousarray(piece).data.cast("B"))


def check(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise unless `path` is a complete .npy file of this shape and type."""
    try:
        with path.open("rb") as file:
            found, found_dtype = _header(file)
            left = path.stat().st_size - file.tell()
    except FileNotFoundError:
        raise UserError(f"{path} is missing: the checkpoint is not complete") from None
    except ValueError as error:
        raise UserError(f"{path} is not a readable .npy file ({error})") from None
    if found != shape or found_dtype != dtype:
        raise UserError(
            f"{path} holds {found_dtype} of shape {found}, expected {dtype} of shape {shape}"
        )
    expected = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if left != expected:
        raise UserError(f"{path} is truncated: {left} bytes of data, expected {expected}")


def read(path: Path, parts: Sequence[Array]) -> None:
    """Fill `parts` (views, written in place) one after the other from a checked file."""
    with path.open("rb") as file:
        _header(file)
        for part in parts:
            for piece in _pieces(part):
                data = np.empty(piece.shape, piece.dtype)
                view = data.data.cast("B")
                if file.readinto(view) != len(view):
                    raise UserError(f"{path} is truncated")
                piece[...] = data


def _pieces(part: Array) -> Iterator[Array]:
    if part.size:
        for start in range(0, len(part), _PIECE):
            yield part[start : start + _PIECE]


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"format version {version}")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    return shape, dtype
