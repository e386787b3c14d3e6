"""What goes wrong in an analysis: mistakes of the user, and runs that are damaged."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import accumulate

_NAMES = 400
"""Characters of the names that an error lists; `fog` prints lines of at most 600."""


class AnalysisError(Exception):
    """Bad input. The message is one line that names the mistake and the fix.

    The command line prints it and exits with `exit_code`; no traceback is shown.
    """

    exit_code = 2


class RunsWarning(UserWarning):
    """Some runs are damaged or incomplete; `Runs.problems` names them."""


def unknown(kind: str, name: object, known: Iterable[str]) -> AnalysisError:
    """The error for a name that does not exist, with the nearest one that does."""
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {_listed(names) or 'none'}"
    return AnalysisError(f"unknown {kind} {name!r}: {hint}")


def _listed(names: Sequence[str]) -> str:
    """Names for an error message: those that fit into its line, and how many more there are."""
    fitting = sum(end <= _NAMES for end in accumulate(len(name) + 2 for name in names))
    more = len(names) - fitting
    return ", ".join(names[:fitting]) + (f" and {more} more" if more else "")
