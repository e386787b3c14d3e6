"""How this package starts Python: a child never imports from the folder it is started in.

`python -m` and `python -c` put the working directory before the standard library, so a `copy.py`
that happens to be there would run instead of Python's own. `-P` leaves it out, and so does
`PYTHONSAFEPATH` for children that libraries start: torch and glfw call `python -c` to try out what
this machine can do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SAFE_PATH = "PYTHONSAFEPATH"


def python(*arguments: str) -> list[str]:
    """The command that runs this interpreter with these arguments."""
    return [sys.executable, "-P", *arguments]


@contextmanager
def safe_path() -> Iterator[None]:
    """Keep the working directory from every Python that any library starts meanwhile."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        del os.environ[_SAFE_PATH]
        if before is not None:
            os.environ[_SAFE_PATH] = before
