from __future__ import annotations

import dataclasses
import math
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fog.errors import ConfigError
from fog.settings import config_file
from fog.settings.config import GROUPS, Config, group_of
from fog.settings.options import hints
from fog.settings.variants import VARIANTS, resolve

BAD = [
    ({"tau": 1.5}, "tau"),
    ({"tau": -0.1}, "tau"),
    ({"epsilon": 0.0}, "epsilon"),
    ({"epsilon": 1.0}, "epsilon"),
    ({"steps": -1}, "steps"),
    ({"steps": 100}, "steps"),
    ({"batch_size": 2_000_000}, "batch_size"),
    ({"maximal_depth": 1}, "maximal_depth"),
    ({"stem_layers": 3}, "stem_layers: must be >= 1 and <= 2, got 3"),
    ({"log_std_map": "soft"}, "log_std_map: expected one of clip, smooth"),
    ({"reset_steps": (50_000, 15_000)}, "reset_steps"),
    ({"reset_steps": (15_000, 15_000)}, "reset_steps"),
    ({"expansion_updates": (200_000, 50_000)}, "expansion_updates"),
    ({"priming_updates": -1}, "priming_updates: must be >= 0 and <= 1e+07, got -1"),
    ({"priming_updates": 10**9}, "priming_updates: must be >= 0 and <= 1e+07, got 1000000000"),
    ({"priming_updates": 1.5}, "priming_updates: expected integer"),
    ({"priming_updates": 1_000, "warmup_steps": 200}, "collects less than one batch_size"),
    ({"priming_updates": 1_000, "steps": 5_000}, "ends within the random warm-up"),
    ({"width": "wide"}, "width"),
    ({"width": True}, "width"),
    ({"width": 64.5}, "width"),
    ({"discount": math.nan}, "discount"),
    ({"critic_lr": math.inf}, "critic_lr"),
    ({"sampler": "unifrom"}, "sampler"),
    ({"log_std_min": 3.0}, "log_std_min"),
    ({"warmup_steps": 10}, "warmup_steps"),
    ({"scale": 0.0}, "scale"),
    ({"scale": 1e-7}, "scale"),
    ({"widht": 64}, "width"),
]


@pytest.mark.parametrize(("change", "named"), BAD, ids=lambda value: str(value))
def test_bad_settings_are_one_line_that_names_the_field(change: dict, named: str) -> None:
    with pytest.raises(ConfigError) as error:
        resolve("humanoid-walk", **change)
    message = str(error.value)
    assert named in message
    assert "\n" not in message
    assert error.value.exit_code == 2


def test_bare_names_are_unique() -> None:
    count = sum(len(dataclasses.fields(cls)) for cls in GROUPS.values())
    assert count == len(group_of())


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_round_trips_through_yaml(variant: str) -> None:
    config = resolve("humanoid-walk", variant, scale=0.03)
    assert config_file.from_yaml(config_file.to_yaml(config)) == config


def test_yaml_reads_numbers_as_people_write_them() -> None:
    settings = config_file.settings_from_yaml(
        "replay: {epsilon: 1e-5, tau: .1}\nrun: {steps: 100_000}"
    )
    assert settings == {"epsilon": 1e-5, "tau": 0.1, "steps": 100_000}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("replay: {epsilom: 1}", "did you mean 'epsilon'?"),
        ("epsilon: 1", "epsilon belongs below replay:"),
        ("replya: {epsilon: 1}", "did you mean 'replay'?"),
        ("replay: 3", "expected settings below it"),
        ("- 1", "expected groups"),
        ("a: [", "not valid YAML"),
    ],
)
def test_bad_yaml_is_explained_in_one_line(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        config_file.from_yaml(text)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def values(hint: object) -> st.SearchStrategy:
    """Values that are mostly of the right type and sometimes of any other."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        right = st.sampled_from(arguments)
    elif origin is tuple:
        inner = {int: st.integers(-5, 10**6), str: st.sampled_from(["all", "none", "x"])}
        right = st.lists(inner[arguments[0]], max_size=5)
    elif hint is bool:
        right = st.booleans()
    elif hint is int:
        right = st.integers(-5, 2_000_000)
    elif hint is float:
        right = st.floats(-2, 20) | st.sampled_from([0.0, 1.0, 0.5, math.inf, math.nan])
    else:
        right = st.text(max_size=8) | st.none()
    return st.one_of(right, right, right, st.none(), st.text(max_size=5), st.integers())


CHANGES = st.dictionaries(st.sampled_from(sorted(group_of())), st.none(), max_size=6).flatmap(
    lambda names: st.fixed_dictionaries(
        {name: values(hints(GROUPS[group_of()[name]])[name]) for name in names}
    )
)


@settings(max_examples=400, deadline=None)
@given(CHANGES)
def test_any_config_is_accepted_and_round_trips_or_is_rejected_by_name(changes: dict) -> None:
    try:
        config = Config().replace(**changes)
    except ConfigError as error:
        assert any(name in str(error) for name in group_of())
        assert "\n" not in str(error)
        return
    assert config_file.from_yaml(config_file.to_yaml(config)) == config
    assert Config.from_flat(config.flat()) == config
