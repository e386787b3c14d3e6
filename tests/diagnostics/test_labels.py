"""Labels tell runs apart by settings that influence them."""

from __future__ import annotations

from diagnostics.labels import _NO_INFLUENCE
from fog.rundir import _RUNTIME


def test_settings_without_influence_are_those_that_may_change_on_resume() -> None:
    """The analysis may not import fog, so it keeps its own list; this keeps the two together."""
    identity = {"task", "variant", "seed"}
    watching = {"probes", "log_every"}
    assert set(_RUNTIME) | identity | watching == _NO_INFLUENCE
