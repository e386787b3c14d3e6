"""The facts of each suite, against the suite itself."""

from __future__ import annotations

import dataclasses
import importlib

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from fog import envs, seeding
from fog.envs import detect
from fog.errors import UserError
from fog.settings import tasks
from fog.settings.tasks import Task
from tests.fog.envs.envs_support import ONE_OF_EACH, actions, rollout, task_param

EACH = [task_param(name) for name in ONE_OF_EACH]


@pytest.mark.parametrize("name", EACH)
def test_restepping_restores_the_middle_of_an_episode(name: str) -> None:
    """What a resumed run does: reset to the episode, repeat its actions, go on."""
    env = envs.make(name, seed=1)
    rollout(env, episode=0)
    env.reset()
    taken = actions(env, 5, 40)
    whole = [env.step(action)[:2] for action in taken]
    after, _ = env.reset()

    resumed = envs.make(name, seed=1)
    resumed.reset(options={"episode": 1})
    for action, (observation, reward) in zip(taken, whole, strict=True):
        again, reward_again, *_ = resumed.step(action)
        np.testing.assert_array_equal(again, observation)
        assert reward_again == reward
    np.testing.assert_array_equal(resumed.reset()[0], after)


@pytest.mark.parametrize("name", [*EACH, "gym:Pendulum-v1", "gym:Hopper-v5"])
def test_environment_checker_finds_nothing(name: str, recwarn: pytest.WarningsRecorder) -> None:
    env = envs.make(name, seed=0)
    check_env(env, skip_render_check=True)
    messages = [str(warning.message) for warning in recwarn]
    if name != "gym:Pendulum-v1":
        # The simulators do not know bounds of joint positions and velocities.
        messages = [message for message in messages if "infinity" not in message]
    assert messages == []


@pytest.mark.parametrize("name", EACH)
def test_global_generator_is_left_alone(name: str) -> None:
    before = np.random.get_state()  # noqa: NPY002
    env = envs.make(name, seed=0)
    env.reset()
    env.step(np.zeros(env.action_space.shape))
    after = np.random.get_state()  # noqa: NPY002
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2] == after[2]


@pytest.mark.parametrize("name", EACH)
def test_global_seed_changes_nothing(name: str) -> None:
    seen = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002
        seen.append(rollout(envs.make(name, seed=2), episode=4, steps=5))
    np.testing.assert_array_equal(*seen)


def test_mujoco_equals_gymnasium_with_the_episode_seed() -> None:
    env = envs.make("Humanoid-v4", seed=5)
    with pytest.warns(DeprecationWarning, match="out of date"):
        reference = gymnasium.make("Humanoid-v4")
    expected, _ = reference.reset(seed=seeding.integer_seed(5, "env", 0))
    np.testing.assert_array_equal(env.reset()[0], expected.astype(np.float32))
    for action in actions(env, 0, 10):
        observation, reward, *_ = env.step(action)
        # Humanoid's own controls end at 0.4.
        expected, expected_reward, *_ = reference.step(action * np.float32(0.4))
        np.testing.assert_array_equal(observation, expected.astype(np.float32))
        assert reward == expected_reward


def test_dmc_equals_dm_control_in_the_order_of_its_specification() -> None:
    env = envs.make("humanoid-walk", seed=5)
    suite = importlib.import_module("dm_control.suite")
    reference = suite.load(
        "humanoid", "walk", task_kwargs={"random": seeding.integer_seed(5, "env", 0)}
    )

    def flat(timestep: object) -> np.ndarray:
        parts = [np.ravel(timestep.observation[key]) for key in reference.observation_spec()]
        return np.concatenate(parts).astype(np.float32)

    np.testing.assert_array_equal(env.reset()[0], flat(reference.reset()))
    for action in actions(env, 0, 10):
        observation, reward, *_ = env.step(action)
        timestep = reference.step(action)
        np.testing.assert_array_equal(observation, flat(timestep))
        assert reward == timestep.reward


def never(name: str) -> Task:
    return dataclasses.replace(tasks.get(name), termination="never")


@pytest.mark.parametrize(
    "name", ["Ant-v4", "Humanoid-v4", "Walker2d-v4", "gym:Hopper-v4", "gym:InvertedPendulum-v4"]
)
def test_a_robot_that_has_fallen_goes_on_to_the_time_limit(name: str) -> None:
    usual, env = envs.make(name, seed=3), envs.make(never(name), seed=3)
    usual.reset()
    observation, _ = env.reset()
    moves = actions(env, 1, 1000)
    # Full controls throw every one of them over, the ant by a jump.
    moves = np.sign(moves)
    fell = None
    for k, move in enumerate(moves):
        observation, reward, terminated, truncated, _ = env.step(move)
        assert not terminated and truncated == (k == 999)
        assert np.isfinite(observation).all() and np.isfinite(reward)
        if fell is None:
            again, usual_reward, ended, *_ = usual.step(move)
            np.testing.assert_array_equal(observation, again)
            fell = k if ended else None
            assert ended or reward == usual_reward
    assert fell is not None and fell < 900


@pytest.mark.parametrize(("name", "bonus"), [("Humanoid-v4", 5.0), ("Walker2d-v4", 1.0)])
def test_the_reward_for_being_healthy_ends_with_health(name: str, bonus: float) -> None:
    """Gymnasium's v4 pays it in any state as long as falling ends the episode."""
    usual, env = envs.make(name, seed=3), envs.make(never(name), seed=3)
    usual.reset()
    env.reset()
    ended = False
    for move in np.sign(actions(env, 1, 500)):
        reward = env.step(move)[1]
        _, usual_reward, ended, *_ = usual.step(move)
        if ended:
            break
    assert ended
    assert usual_reward - reward == pytest.approx(bonus)


@pytest.mark.parametrize("name", [task_param("cartpole-swingup"), task_param("mw-assembly")])
def test_suites_without_termination_are_unaffected(name: str) -> None:
    usual = rollout(envs.make(name, seed=2), episode=4)
    np.testing.assert_array_equal(rollout(envs.make(never(name), seed=2), episode=4), usual)


def test_dmc_goes_on_where_its_task_would_end() -> None:
    env = envs.make(never("cartpole-swingup"), seed=0)
    free = env.simulator._env.task.get_termination
    assert free(env.simulator._env.physics) is None
    ending = envs.make("cartpole-swingup", seed=0)
    ending.simulator._env.task.get_termination = lambda physics: 0.0
    ending.reset()
    assert ending.step([0.0])[2]
    # dm_control would start a new episode at the next step; with `never` it is not reached.
    ending.simulator.never_terminate()
    ending.reset()
    assert not any(ending.step([0.5])[2] for _ in range(20))


@pytest.mark.parametrize("name", EACH)
def test_repeated_actions_are_steps_in_a_row(name: str) -> None:
    single = envs.make(name, seed=1)
    double = envs.make(dataclasses.replace(tasks.get(name), action_repeat=2), seed=1)
    single.reset()
    double.reset()
    for action in actions(single, 0, 10):
        first = single.step(action)
        second = single.step(action)
        observation, reward, *_ = double.step(action)
        np.testing.assert_array_equal(observation, second[0])
        assert reward == first[1] + second[1]


def test_the_quadruped_of_dmc_works_although_its_numpy_is_older() -> None:
    env = envs.make("dmc:quadruped-walk", seed=0)
    observation, _ = env.reset()
    after, *_ = env.step(np.ones(env.action_space.shape, np.float32))
    assert observation.shape == after.shape == (78,)
    assert not np.array_equal(observation, after)


def test_metaworld_shows_a_new_goal_in_every_episode() -> None:
    env = envs.make("mw-assembly", seed=0)
    goals = []
    for _ in range(3):
        observation, _ = env.reset()
        sawyer = env.simulator._env
        np.testing.assert_array_equal(observation[-3:], np.float32(sawyer._target_pos))
        assert sawyer.goal_space.contains(sawyer._target_pos)
        goals.append(tuple(observation[-3:]))
    assert len(set(goals)) == 3


@pytest.mark.filterwarnings("ignore:Constant.s. may be too high")
def test_metaworld_counts_the_success_of_its_scripted_policy() -> None:
    env = envs.make("mw-assembly", seed=0)
    policy = importlib.import_module("metaworld.policies").SawyerAssemblyV3Policy()
    observation, _ = env.reset()
    successes = []
    for _ in range(200):
        observation, *_, info = env.step(policy.get_action(observation.astype(float)))
        successes.append(info["success"])
    assert successes[0] == 0.0
    assert max(successes) == 1.0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gym:Pendulm-v1", "did you mean gym:Pendulum-v1?"),
        ("gym:Pendulum-v99", "did you mean gym:Pendulum-v1?"),
        ("gym:no_such_module:Env-v0", "cannot import no_such_module"),
        ("dmc:cheetah-rn", "did you mean dmc:cheetah-run?"),
        ("dmc:ball-in-cap-catch", "did you mean dmc:ball-in-cup-catch?"),
        ("mw:reech", "did you mean mw:reach?"),
        ("mw:zzzzzz", "for example mw:reach"),
        ("gym:CartPole-v1", "Discrete(2)"),
        ("dmc:lqr-lqr-2-1", "unbounded actions"),
    ],
)
def test_unusable_tasks_say_so_in_one_line(name: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        envs.make(name, seed=0)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


class Picture(gymnasium.Env):
    """A Box environment whose observation is an image."""

    observation_space = spaces.Box(0, 255, (4, 4, 3), np.uint8)
    action_space = spaces.Box(-1, 1, (1,), np.float32)


class Nested(Picture):
    """A Box environment whose observation is a dictionary."""

    observation_space = spaces.Dict({"goal": spaces.Box(-1, 1, (3,))})


class Grid(Picture):
    """An environment whose action is a matrix."""

    observation_space = spaces.Box(-1, 1, (3,))
    action_space = spaces.Box(-1, 1, (2, 2), np.float32)


@pytest.mark.parametrize(
    ("environment", "message"),
    [(Picture, "shape (4, 4, 3)"), (Nested, "Dict("), (Grid, "shape (2, 2)")],
)
def test_spaces_that_are_no_vectors_are_refused(
    environment: type, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = gymnasium.envs.registration.EnvSpec("FogTest-v0", entry_point=environment)
    monkeypatch.setitem(gymnasium.registry, "FogTest-v0", spec)
    with pytest.raises(UserError) as caught:
        envs.make("gym:FogTest-v0", seed=0)
    assert message in str(caught.value)


def test_unknown_render_mode_is_refused() -> None:
    with pytest.raises(UserError, match="render_mode 'human'"):
        envs.make("HalfCheetah-v4", seed=0, render_mode="human")


@pytest.mark.skipif(detect.humanoidbench().available, reason="HumanoidBench is installed")
def test_absent_humanoidbench_names_the_install_command() -> None:
    with pytest.raises(UserError) as caught:
        envs.make("h1-walk", seed=0)
    assert detect.HUMANOIDBENCH_INSTALL in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not detect.humanoidbench().available, reason=detect.humanoidbench().detail)
def test_unknown_humanoidbench_id_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean hb:h1-walk-v0"):
        envs.make("hb:h1-wlk-v0", seed=0)
