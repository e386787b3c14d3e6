"""What a sweep decides: start, resume, skip, retry, leave alone, stop."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fog.cli.sweepreport import summary
from fog.records.run_directory import RunDirectory
from fog.sweep import sweep as module
from fog.sweep.job import Job
from fog.sweep.sweep import Outcome, Sweep
from tests.fog.sweep.scripted import (
    Act,
    Heard,
    Scripted,
    begin,
    crash,
    diverge,
    finish,
    interrupt_us,
    jobs_in,
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.0)
    yield


def swept(out: Path, count: int, script: dict[int, list[Act]], **options: float) -> Outcome:
    return Sweep(jobs_in(out, count), Scripted(script), Heard(), **options).run()


def states(outcome: Outcome) -> list[str]:
    return [entry.state for entry in outcome.tally.entries]


def test_all_runs_finish_and_no_more_than_the_slots_are_open(tmp_path: Path) -> None:
    engine = Scripted({}, slots=2)
    outcome = Sweep(jobs_in(tmp_path, 5), engine, Heard()).run()
    assert states(outcome) == ["finished"] * 5
    assert outcome.exit_code == 0
    assert engine.submitted[0] == [0, 1]
    assert engine.most_at_once == 2
    assert engine.closed


def test_an_engine_that_queues_gets_all_at_once(tmp_path: Path) -> None:
    engine = Scripted({}, slots=None)
    assert Sweep(jobs_in(tmp_path, 5), engine, Heard()).run().exit_code == 0
    assert engine.submitted == [[0, 1, 2, 3, 4]]


def test_finished_runs_are_skipped_and_others_started(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path, 5)
    begin(jobs[0], "finished")
    begin(jobs[1], "diverged")
    begin(jobs[2], "interrupted", 70)
    begin(jobs[3], "running", 70)
    engine = Scripted({}, slots=None)
    outcome = Sweep(jobs, engine, Heard()).run()
    assert engine.submitted == [[2, 3, 4]]
    assert states(outcome) == ["finished", "diverged", "finished", "finished", "finished"]


def test_divergence_is_a_result(tmp_path: Path) -> None:
    outcome = swept(tmp_path, 2, {1: [diverge]})
    assert states(outcome) == ["finished", "diverged"]
    assert outcome.exit_code == 0
    assert "2 runs: 1 diverged, 1 finished" in summary(outcome)


def test_a_crash_after_a_checkpoint_is_resumed(tmp_path: Path) -> None:
    crashes = [crash(1, 70), crash(1, 140), crash(-9, 210)]
    outcome = swept(tmp_path, 2, {0: crashes})
    assert states(outcome) == ["finished", "finished"]


def test_a_crash_at_the_same_place_is_a_failure_and_others_go_on(tmp_path: Path) -> None:
    said = "Traceback (most recent call last):\n  ...\nValueError: no such luck\n\n"
    outcome = swept(tmp_path, 3, {1: [crash(1, 70), crash(1, log=said)]})
    assert states(outcome) == ["finished", "failed", "finished"]
    assert outcome.exit_code == 1
    text = summary(outcome)
    assert "failed: gym:Pendulum-v1 sac seed1: ValueError: no such luck (log: " in text
    assert "3 runs: 1 failed, 2 finished" in text


def test_one_death_by_a_signal_is_forgiven_without_progress(tmp_path: Path) -> None:
    outcome = swept(tmp_path, 2, {0: [crash(-9)], 1: [crash(-9), crash(-9)]})
    assert states(outcome) == ["finished", "failed"]
    assert "killed by SIGKILL (out of memory?)" in summary(outcome)


def test_bad_input_is_not_retried(tmp_path: Path) -> None:
    outcome = swept(tmp_path, 1, {0: [crash(2, 70, "fog: no such thing")]})
    assert states(outcome) == ["failed"]
    assert outcome.tally.entries[0].reason == "no such thing"


def test_a_failed_run_is_tried_again_by_the_next_sweep(tmp_path: Path) -> None:
    assert states(swept(tmp_path, 1, {0: [crash(2)]})) == ["failed"]
    assert states(swept(tmp_path, 1, {})) == ["finished"]


def test_a_run_of_another_process_is_left_alone(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path, 3)
    other = RunDirectory.create(jobs[1].config)
    engine, heard = Scripted({}), Heard()
    outcome = Sweep(jobs, engine, heard, patience=0.05).run()
    assert states(outcome) == ["finished", "busy", "finished"]
    assert outcome.exit_code == 1
    assert engine.submitted == [[0, 2]]
    assert heard.lines == ["1 run is being written by another process: waiting up to 0 s for it"]
    assert "were left alone" in summary(outcome)
    other.unlock()


def test_a_run_whose_lock_is_let_go_is_taken_up(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path, 3)
    locks = {seed: RunDirectory.create(jobs[seed].config) for seed in (0, 1)}

    def free_both(job: object) -> int:
        locks[0].update_manifest(status="finished")
        for lock in locks.values():
            lock.unlock()
        return finish(jobs[2])

    engine = Scripted({2: [free_both]})
    outcome = Sweep(jobs, engine, Heard()).run()
    assert states(outcome) == ["finished"] * 3
    # Seed 0 was finished by the other process, seed 1 was resumed by us.
    assert engine.submitted == [[2], [1]]


def test_a_run_that_another_sweep_started_a_moment_earlier(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path, 2)

    def lost_the_race(job: object) -> int:
        begin(jobs[0], "finished")
        return 2

    engine = Scripted({0: [lost_the_race]})
    outcome = Sweep(jobs, engine, Heard()).run()
    assert states(outcome) == ["finished", "finished"]
    assert engine.submitted == [[0, 1]]


def test_a_lost_race_for_the_lock_is_tried_again(tmp_path: Path) -> None:
    """Whoever held the lock may have let it go before the sweep looks."""
    engine, heard = Scripted({0: [lambda job: 75, lambda job: 75]}), Heard()
    outcome = Sweep(jobs_in(tmp_path, 1), engine, heard).run()
    assert states(outcome) == ["finished"]
    assert engine.submitted == [[0], [0], [0]]
    assert (0, "failed") not in heard.changes


@pytest.mark.parametrize("status", ["interrupted", "running"])
def test_a_run_that_another_process_began_and_let_go_is_resumed(
    tmp_path: Path, status: str
) -> None:
    def refused_as_new(job: Job) -> int:
        begin(job, status, 70)
        return 2

    engine = Scripted({0: [refused_as_new]})
    assert states(Sweep(jobs_in(tmp_path, 1), engine, Heard()).run()) == ["finished"]
    assert engine.submitted == [[0], [0]]


def test_a_refusal_to_resume_is_not_tried_again(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path, 1)
    begin(jobs[0], "interrupted", 70)
    engine = Scripted({0: [lambda job: 2]})
    assert states(Sweep(jobs, engine, Heard()).run()) == ["failed"]
    assert engine.submitted == [[0]]


def other_settings(job: Job, status: str) -> None:
    """Leave what a sweep with another batch size would."""
    directory = RunDirectory.create(job.config.replace(batch_size=8))
    directory.update_manifest(status=status, env_step=70)
    directory.unlock()


@pytest.mark.parametrize("status", ["finished", "diverged", "interrupted", "running"])
def test_a_run_of_another_sweep_with_other_settings_is_not_ours(
    tmp_path: Path, status: str
) -> None:
    jobs = jobs_in(tmp_path, 4)
    other_settings(jobs[0], status)

    def others_too(job: Job) -> int:
        other_settings(jobs[2], status)
        other_settings(jobs[3], status)
        return finish(job)

    def refused(job: Job) -> int:
        return 2

    engine = Scripted({1: [others_too], 2: [refused]}, slots=2)
    outcome = Sweep(jobs, engine, Heard()).run()
    assert states(outcome) == ["failed", "finished", "failed", "failed"]
    # Seed 2 was submitted before the other sweep took it, 0 and 3 never.
    assert engine.submitted == [[1, 2]]
    for seed in (0, 2, 3):
        assert "started with batch_size = 8, now batch_size = 16" in (
            outcome.tally.entries[seed].reason
        )


def test_a_run_that_another_sweep_finished_meanwhile_is_not_started(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path, 2)

    def both(job: object) -> int:
        finish(jobs[1])
        return finish(jobs[0])

    engine = Scripted({0: [both]}, slots=1)
    assert states(Sweep(jobs, engine, Heard()).run()) == ["finished", "finished"]
    assert engine.submitted == [[0]]


def test_ctrl_c_stops_all_and_the_next_sweep_goes_on(tmp_path: Path) -> None:
    engine = Scripted({0: [interrupt_us], 1: [crash(130, 70)]})
    outcome = Sweep(jobs_in(tmp_path, 4), engine, Heard()).run()
    assert outcome.exit_code == 130
    assert states(outcome) == ["waiting", "interrupted", "waiting", "waiting"]
    assert engine.stopped == [False]
    assert swept(tmp_path, 4, {}).exit_code == 0


def test_a_second_ctrl_c_kills(tmp_path: Path) -> None:
    engine = Scripted({0: [interrupt_us], 1: [interrupt_us], 2: [crash(-9)]}, slots=3)
    outcome = Sweep(jobs_in(tmp_path, 4), engine, Heard()).run()
    assert outcome.exit_code == 130
    assert engine.stopped == [False, True]
    assert "finished" not in states(outcome)


def test_a_full_disk_starts_no_more_runs(tmp_path: Path) -> None:
    full = crash(2, 70, f"fog: cannot write checkpoint x: {os.strerror(errno.ENOSPC)}")
    outcome = swept(tmp_path, 5, {0: [full]})
    assert states(outcome) == ["failed", "finished", "waiting", "waiting", "waiting"]
    assert outcome.exit_code == 1
    assert "The disk is full" in summary(outcome)
    assert swept(tmp_path, 5, {}).exit_code == 0
