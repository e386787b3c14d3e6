"""Labels tell runs apart by settings that influence them."""

from __future__ import annotations

import pandas as pd

from diagnostics.runs.labels import _SINCE, labels
from fog.records.runtime import RUNTIME
from fog.settings.config import Config


def test_runs_that_differ_in_where_and_how_they_ran_have_one_label() -> None:
    settings = Config().flat()
    assert set(RUNTIME) < set(settings)
    identity = pd.DataFrame({"task": ["t"] * 2, "variant": ["sac"] * 2})
    elsewhere = {**settings, **dict.fromkeys(RUNTIME, "other"), "seed": 9, "log_every": 7}
    assert labels(identity, [settings, elsewhere]) == ["sac", "sac"]


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


def test_where_some_runs_of_a_task_are_primed_all_say_their_dose() -> None:
    identity = pd.DataFrame({"task": ["t", "t", "other"], "variant": ["sac", "sac-reset", "sac"]})
    configs = [{"priming_updates": dose} for dose in (0, 500, 500)]
    assert labels(identity, configs) == [
        "sac (priming updates 0)",
        "sac-reset (priming updates 500)",
        "sac",
    ]
