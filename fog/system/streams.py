"""Standard output and error that may go away while a command works.

The reader of a pipe leaves (`fog train ... | head -1`), the disk behind a log fills up, a service
starts us with its streams closed: none of it is a reason to stop training. Output that can no
longer be written is dropped, and the command continues to its own exit code.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO, cast

from fog.system.text import plain

_NOWHERE = Path(os.devnull)


class Lasting:
    """A text stream that takes everything, whatever became of the one behind it.

    Attributes:
        lost: the first failure to write, None while all is well.
    """

    def __init__(self, stream: TextIO, adapt: Callable[[str], str]) -> None:
        self.lost: OSError | None = None
        self._stream = stream
        self._adapt = adapt

    def write(self, text: str) -> int:
        """Write, or drop it."""
        with self._forgiving():
            self._stream.write(self._adapt(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each, or drop it."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush, or leave it."""
        with self._forgiving():
            self._stream.flush()

    @contextlib.contextmanager
    def _forgiving(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.lost = self.lost or error

    def finish(self) -> None:
        """Flush; if that fails, throw away what is left, or Python would complain at its end."""
        self.flush()
        if self.lost is not None:
            with contextlib.suppress(OSError), _NOWHERE.open("w") as null:
                os.dup2(null.fileno(), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Output:
    """What became of standard output."""

    def __init__(self, stream: Lasting) -> None:
        self._stream = stream

    @property
    def failure(self) -> str | None:
        """Why it could not be written; None also if only its reader has left."""
        lost = self._stream.lost
        return None if lost is None or lost.errno == errno.EPIPE else lost.strerror or str(lost)


@contextlib.contextmanager
def lasting() -> Iterator[Output]:
    """Within the block, `sys.stdout` and `sys.stderr` never fail.

    Standard output is also kept plain, because names of other people's runs are printed there;
    on standard error there are progress bars, which steer the terminal.
    """
    _open_missing()
    before = sys.stdout, sys.stderr
    with _NOWHERE.open("w") as null:
        # None is what Python makes of a stream that was closed from the start.
        out, err = Lasting(before[0] or null, plain), Lasting(before[1] or null, str)
        _allow_all_characters(before[0])
        sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, err)
        try:
            yield Output(out)
        finally:
            sys.stdout, sys.stderr = before
            out.finish()
            err.finish()


def _open_missing() -> None:
    """Open what is closed of the first three files, or ours would get their numbers.

    A library that writes to standard output would then write into a checkpoint.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _allow_all_characters(stream: TextIO | None) -> None:
    """Spell out what the terminal's encoding does not have; standard error does so anyway."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
