"""The most memory that a process ever held."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_bytes(pid: int | None = None) -> int:
    """Peak memory of a process (this one if None) in bytes; 0 if it has ended.

    On Linux not from `getrusage`: there a child inherits the peak of its parent, so that every
    child of a large process looks as large. Outside Linux only this process is supported.
    """
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        status = Path(f"/proc/{pid or 'self'}/status").read_text()
    except OSError:
        return 0
    # A process that has ended and was not waited for has a status without its memory.
    _, found, rest = status.partition("VmHWM:")
    return 1024 * int(rest.split()[0]) if found else 0
