"""What the environment adds to a simulator, on a simulator that records what it is given."""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium
import numpy as np
import pytest

from fog import seeding
from fog.envs.simulator import unbounded
from fog.envs.task_env import TaskEnv
from fog.errors import UserError
from fog.settings.tasks import Task

TASK = Task("fake", "gym", "other", "fake", episode_length=5)


class Recorder:
    """Pays 1, 2, 3, ... and succeeds on its second step only."""

    def __init__(self, low: float = -1.0, high: float = 1.0, ends_at: int | None = None) -> None:
        self.observation_space = unbounded(1)
        self.action_low = np.full(2, low, np.float32)
        self.action_high = np.full(2, high, np.float32)
        self.max_steps: int | None = 4
        self.render_fps = 10
        self.seeds: list[int] = []
        self.actions: list[np.ndarray] = []
        self._ends_at = ends_at
        self._step = 0
        self.told = False

    def reset(self, seed: int) -> tuple[np.ndarray, dict[str, Any]]:
        self.seeds.append(seed)
        self._step = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.actions.append(action)
        self._step += 1
        observation = np.full(1, self._step, np.float32)
        terminated = self._step == self._ends_at
        return observation, float(self._step), terminated, False, {"success": self._step == 2}

    def never_terminate(self) -> None:
        self.told = True

    def render(self) -> np.ndarray:
        return np.zeros((2, 2, 3), np.uint8)

    def close(self) -> None:
        pass


def make(simulator: Recorder, render_mode: str | None = None, **changes: Any) -> TaskEnv:
    return TaskEnv(dataclasses.replace(TASK, **changes), simulator, 7, "env", render_mode)


def test_episode_seeds_depend_on_seed_stream_and_number_only() -> None:
    simulator = Recorder()
    env = make(simulator)
    env.reset()
    env.reset()
    env.reset(options={"episode": 5})
    env.reset()
    env.get_wrapper_attr("set_episode")(1)
    env.reset()
    expected = [seeding.integer_seed(7, "env", k) for k in (0, 1, 5, 6, 1)]
    assert simulator.seeds == expected
    other = Recorder()
    TaskEnv(TASK, other, 7, "eval", None).reset()
    assert other.seeds[0] != expected[0]


def test_reset_with_seed_goes_on_like_a_new_environment_of_that_seed() -> None:
    simulator = Recorder()
    env = make(simulator)
    env.reset(options={"episode": 3})
    env.reset(seed=11)
    env.reset()
    assert simulator.seeds[1:] == [seeding.integer_seed(11, "env", k) for k in (0, 1)]


def test_negative_episode_is_refused() -> None:
    with pytest.raises(ValueError, match="count from 0"):
        make(Recorder()).reset(options={"episode": -1})


def test_actions_are_clipped_then_rescaled() -> None:
    simulator = Recorder(low=-0.5, high=1.5)
    env = make(simulator)
    env.reset()
    env.step([-1, 1])
    env.step([0, 9])
    np.testing.assert_array_equal(simulator.actions, [[-0.5, 1.5], [0.5, 1.5]])


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.7), (-0.3, 0.1), (0.0, 255.0)])
def test_rounding_never_leaves_the_bounds(low: float, high: float) -> None:
    simulator = Recorder(low, high)
    env = make(simulator, episode_length=1000)
    env.reset()
    for action in np.linspace(-1, 1, 999):
        env.step([action, -action])
    assert np.all(simulator.actions >= simulator.action_low)
    assert np.all(simulator.actions <= simulator.action_high)


def test_actions_that_need_no_rescaling_arrive_unchanged() -> None:
    simulator = Recorder()
    env = make(simulator)
    env.reset()
    action = np.array([0.1, -0.3], np.float32)
    env.step(action)
    np.testing.assert_array_equal(simulator.actions[0], action)


def test_time_limit_truncates_and_the_next_step_needs_a_reset() -> None:
    env = make(Recorder(), episode_length=2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step([0, 0])
    env.reset()
    assert env.step([0, 0])[2:4] == (False, False)
    assert env.step([0, 0])[2:4] == (False, True)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step([0, 0])
    env.reset()
    assert env.step([0, 0])[2:4] == (False, False)


def test_suite_limit_holds_where_the_task_names_none() -> None:
    env = make(Recorder(), episode_length=None)
    env.reset()
    assert [env.step([0, 0])[3] for _ in range(4)] == [False, False, False, True]


def test_action_repeat_sums_rewards_and_keeps_any_success() -> None:
    env = make(Recorder(), action_repeat=3)
    env.reset()
    observation, reward, _, truncated, info = env.step([0, 0])
    assert (observation[0], reward, truncated, info["success"]) == (3, 1 + 2 + 3, False, 1.0)
    observation, reward, _, truncated, info = env.step([0, 0])
    assert (observation[0], reward, truncated, info["success"]) == (5, 4 + 5, True, 0.0)


def test_never_terminating_goes_on_to_the_time_limit() -> None:
    simulator = Recorder(ends_at=2)
    env = make(simulator, termination="never")
    assert simulator.told
    env.reset()
    seen = [env.step([0, 0]) for _ in range(5)]
    assert [step[0][0] for step in seen] == [1, 2, 3, 4, 5]
    assert [step[2] for step in seen] == [False] * 5
    assert [step[3] for step in seen] == [False] * 4 + [True]
    env = make(Recorder(ends_at=2), termination="never", action_repeat=3)
    env.reset()
    assert env.step([0, 0])[:2] == (3, 1 + 2 + 3)
    assert not make(Recorder()).simulator.told


def test_a_simulator_that_cannot_go_on_says_so_in_one_line() -> None:
    class Strict(Recorder):
        def step(self, action: np.ndarray) -> Any:
            if self._step == 2:
                raise RuntimeError("the episode\nis over")
            return super().step(action)

    env = make(Strict(ends_at=2), termination="never")
    env.reset()
    env.step([0, 0])
    env.step([0, 0])
    with pytest.raises(UserError, match=r"fake cannot be stepped .* \(the episode is over\): use"):
        env.step([0, 0])
    # A fault of the simulator before any end is its own.
    env = make(Strict(), termination="never")
    env.reset()
    env.step([0, 0])
    env.step([0, 0])
    with pytest.raises(RuntimeError):
        env.step([0, 0])
    simulator = Recorder()
    simulator.max_steps = None
    with pytest.raises(UserError, match="no time limit"):
        make(simulator, episode_length=None, termination="never")


def test_action_repeat_stops_at_termination() -> None:
    env = make(Recorder(ends_at=2), action_repeat=3)
    env.reset()
    observation, reward, terminated, truncated, _ = env.step([0, 0])
    assert (observation[0], reward, terminated, truncated) == (2, 1 + 2, True, False)


def test_wrong_action_shape_is_refused() -> None:
    env = make(Recorder())
    env.reset()
    with pytest.raises(ValueError, match=r"shape is \(3,\), not \(2,\)"):
        env.step([0, 0, 0])


def test_render_needs_its_mode() -> None:
    with pytest.raises(ValueError, match="rgb_array"):
        make(Recorder()).render()
    assert make(Recorder(), render_mode="rgb_array").render().shape == (2, 2, 3)
