"""Labels tell runs apart by settings that influence them."""

from __future__ import annotations

import pandas as pd

from diagnostics.runs.labels import _NO_INFLUENCE, _SINCE, labels
from fog.records.run_directory import _RUNTIME
from fog.settings.config import Config


def test_settings_without_influence_are_those_that_may_change_on_resume() -> None:
    """The analysis may not import fog, so it keeps its own list; this keeps the two together."""
    identity = {"task", "variant", "seed"}
    watching = {"probes", "log_every"}
    assert set(_RUNTIME) | identity | watching == _NO_INFLUENCE


def test_runs_from_before_a_setting_existed_are_like_those_with_its_default() -> None:
    assert {name: Config().flat()[name] for name in _SINCE} == _SINCE
    identity = pd.DataFrame({"task": ["t"] * 3, "variant": ["sac"] * 3})
    configs = [{"scale": 1.0, "steps": 9, **more} for more in ({}, {"priming_updates": 0})]
    assert labels(identity[:2], configs) == ["sac", "sac"]
    configs.append({"scale": 1.0, "steps": 9, "priming_updates": 500})
    assert labels(identity, configs) == [
        "sac (priming updates 0)",
        "sac (priming updates 0)",
        "sac (priming updates 500)",
    ]
