"""Errors that a user can cause and a user can fix."""

from __future__ import annotations


class UserError(Exception):
    """Bad input. The message is one line that names the mistake and the fix.

    The command line prints the message and exits with `exit_code`; no traceback is shown, because
    nothing is wrong with the program.
    """

    exit_code = 2


class ConfigError(UserError):
    """A configuration value, or a combination of values, that cannot be trained with."""
