"""The one error replay raises for data it must not accept."""

from __future__ import annotations

from fog.errors import UserError


class ReplayError(UserError, ValueError):
    """Data that the replay refuses: nothing has been written when it is raised."""
