"""Text for a terminal that others had a hand in: names, paths, values, messages of libraries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

VALUE = 60
"""Characters of a value that an error message repeats."""
LINE = 600
"""Characters of an error message; the paths of two files fit into it."""
NAMES = 400
"""Characters of the names that an error message lists."""


def plain(text: str) -> str:
    """The text with control characters spelt out, so that it cannot steer a terminal.

    A task called `ESC]0;...` could otherwise rename the window, or hide the line before it.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in text
    )


def one_line(text: str) -> str:
    """The text as one plain line; of a very long one, both ends."""
    return _cut(plain(" ".join(text.split())), LINE)


def shown(value: Any) -> str:
    """A value as an error message repeats it: on one line, and of a long one both ends."""
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to write integers of thousands of digits.
        text = f"a number of {value.bit_length()} bits" if isinstance(value, int) else "a value"
    return _cut(" ".join(text.split()), VALUE)


def listed(names: Sequence[str]) -> str:
    """Names for an error message: those that fit into its line, and how many more there are."""
    fitting = sum(end <= NAMES for end in accumulate(len(name) + 2 for name in names))
    more = len(names) - fitting
    return ", ".join(names[:fitting]) + (f" and {more} more" if more else "")


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 5]} ... {text[-tail:]}"
