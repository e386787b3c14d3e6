"""Optional dependencies, and how to install them."""

from __future__ import annotations


def install(extra: str) -> str:
    """The command for an extra of pyproject.toml; by name it would be a stranger's package.

    This package is on no index, so the command is one for its checkout.
    """
    return f"pip install -c constraints.txt -e '.[{extra}]' in the checkout"
