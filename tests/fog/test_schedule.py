from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fog.schedule import UpdateSchedule, timeline
from fog.variants import resolve


@given(
    ratio=st.decimals("0.01", "20", places=2).map(float),
    warmup=st.integers(1, 50),
    steps=st.integers(0, 400),
)
def test_updates_follow_the_decimal_ratio_without_drift(
    ratio: float, warmup: int, steps: int
) -> None:
    schedule = UpdateSchedule(ratio, warmup)
    hundredths = round(ratio * 100)
    assert schedule.total(warmup) == 0
    assert schedule.total(warmup + steps) == hundredths * steps // 100


@given(ratio=st.sampled_from([0.1, 0.25, 1.0, 3.0, 10.0]), updates=st.integers(1, 500))
def test_first_step_is_the_first(ratio: float, updates: int) -> None:
    schedule = UpdateSchedule(ratio, 7)
    step = schedule.first_step(updates)
    assert schedule.total(step) >= updates > schedule.total(step - 1)


def test_the_papers_own_timeline() -> None:
    plan = timeline(resolve("humanoid-walk", "fog"))
    steps = [(event.kind, event.env_step) for event in plan.events]
    assert steps[:5] == [
        ("expansion", 10_000),
        ("reset", 15_000),
        ("expansion", 20_000),
        ("expansion", 35_000),
        ("cloning", 40_001),
    ]
    assert [at for kind, at in steps if kind == "reset"] == [
        15_000, 50_000, 100_000, 200_000, 400_000, 600_000, 800_000,
    ]  # fmt: skip
    missed = [(event.kind, event.env_step) for event in plan.unreached]
    assert missed == [("expansion", 25_000), ("cloning", 30_001)]


def test_resets_at_or_beyond_the_end_never_happen() -> None:
    plan = timeline(resolve("HalfCheetah-v4", "sac-reset"))
    assert [event.env_step for event in plan.unreached] == [600_000, 800_000]
    assert all("the run ends at step 600000" in event.reason for event in plan.unreached)


@pytest.mark.parametrize("variant", ["sac", "sac-utd1"])
def test_without_a_lifecycle_nothing_is_planned(variant: str) -> None:
    plan = timeline(resolve("humanoid-walk", variant))
    assert plan.events == () and plan.unreached == ()
