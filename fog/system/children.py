"""How this package starts Python: a child never imports from the folder it is started in.

`python -m` and `python -c` put the working directory before the standard library, so a `copy.py`
that happens to be there would run instead of Python's own. `-P` leaves it out.
"""

from __future__ import annotations

import sys


def python(*arguments: str) -> list[str]:
    """The command that runs this interpreter with these arguments."""
    return [sys.executable, "-P", *arguments]
