from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fog.settings.variants import resolve
from fog.training.schedule import UpdateSchedule, timeline


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


@given(
    ratio=st.sampled_from([0.1, 0.25, 1.0, 3.0]),
    warmup=st.integers(1, 9),
    priming=st.integers(0, 12),
)
def test_priming_belongs_to_the_last_step_of_the_warm_up(
    ratio: float, warmup: int, priming: int
) -> None:
    schedule, plain = UpdateSchedule(ratio, warmup, priming), UpdateSchedule(ratio, warmup)
    totals = [schedule.total(step) for step in range(200)]
    assert totals == [plain.total(step) + (priming if step >= warmup else 0) for step in range(200)]
    for updates in range(1, totals[-1] + 1):
        first = next(step for step, total in enumerate(totals) if total >= updates)
        assert schedule.first_step(updates) == first
    assert [step for step in range(200) if schedule.primes(step)] == [warmup] * (priming > 0)


def test_the_timeline_of_a_primed_run() -> None:
    """Expansions and the OBAC wait count the updates of priming; a reset comes after them."""
    changes = {"priming_updates": 60_000, "bc_wait_updates": 59_999, "reset_steps": (5_000,)}
    plan = timeline(resolve("humanoid-walk", "fog", **changes))
    assert [(event.kind, event.env_step) for event in plan.events] == [
        ("priming", 5_000),
        ("expansion", 5_000),
        ("cloning", 5_000),
        ("reset", 5_000),
        ("expansion", 10_000),
        ("cloning", 11_000),
        ("expansion", 25_000),
    ]
    assert plan.events[0].detail == "60000 updates on the first 5000 transitions"


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
    assert [event.reason for event in plan.unreached] == [
        "the reset at step 15000 comes first; the next expansion is at step 20000",
        "the reset at step 15000 comes first; the next cloning is at step 40001",
    ]


def test_an_event_that_no_later_life_reaches_is_said_not_to_come() -> None:
    plan = timeline(resolve("humanoid-walk", "fog", bc_wait_updates=10**8, reset_steps=(15_000,)))
    assert [event.reason for event in plan.unreached if event.kind == "cloning"] == [
        "the reset at step 15000 comes first; no cloning comes later",
        "the run ends at step 1000000",
    ]


def test_details_say_what_happens_and_count_alike() -> None:
    plan = timeline(resolve("humanoid-walk", "fog", reset_steps=()))
    assert [event.detail for event in plan.events] == [
        "depth 2 to 3, 50000 updates after step 0",
        "depth 3 to 4, 200000 updates after step 0",
        "behaviour cloning may act, 250000 updates after step 0",
    ]
    plan = timeline(resolve("humanoid-walk", "fog-injection", reset_steps=()))
    assert [event.detail for event in plan.events if event.kind == "expansion"] == [
        "plasticity injection 1, 50000 updates after step 0",
        "plasticity injection 2, 200000 updates after step 0",
    ]


def test_resets_at_or_beyond_the_end_never_happen() -> None:
    plan = timeline(resolve("HalfCheetah-v4", "sac-reset"))
    assert [event.env_step for event in plan.unreached] == [600_000, 800_000]
    assert all("the run ends at step 600000" in event.reason for event in plan.unreached)


@pytest.mark.parametrize("variant", ["sac", "sac-utd1"])
def test_without_a_lifecycle_nothing_is_planned(variant: str) -> None:
    plan = timeline(resolve("humanoid-walk", variant))
    assert plan.events == () and plan.unreached == ()
