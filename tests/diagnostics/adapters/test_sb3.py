"""Stable-Baselines3 and sb3-contrib: several environments, all served algorithms, refusals."""

from __future__ import annotations

import importlib.util
import json
import os

import gymnasium
import numpy as np
import pytest
import torch

import diagnostics
from fog.errors import UserError
from fog.events import Probe
from fog.system.extras import install

# `make test-slow` installs them and says so: there a missing one is a failure.
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("stable_baselines3", "sb3_contrib"))
    and "FOG_ALL_TESTS" not in os.environ,
    reason=f"stable-baselines3 or sb3-contrib is not installed: {install('sb3')}",
)

CHEAP = ["all", "warmstart:steps=5:batch=16", "plasticity:steps=3"]


class Numbered(gymnasium.Env):
    """Observation (step of the environment's whole life, its number); episodes of 7, 9, 11..."""

    action_space = gymnasium.spaces.Box(-2.0, 2.0, (1,))
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))

    def __init__(self, number: int) -> None:
        self.number, self.life, self.age = number, 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.age = 0
        return self._obs(), {}

    def step(self, action):
        reward = 10.0 * self.life + self.number
        self.life, self.age = self.life + 1, self.age + 1
        ended = self.age == 7 + 2 * self.number
        return self._obs(), reward, ended and self.number % 2 == 0, ended, {}

    def _obs(self):
        return np.array([self.life, self.number], np.float32)


def model_of(name: str, env=None, **settings):
    import sb3_contrib
    import stable_baselines3

    library = stable_baselines3 if hasattr(stable_baselines3, name) else sb3_contrib
    kwargs = {"net_arch": [8, 8]}
    kwargs |= {"n_quantiles": 5, "n_critics": 3} if name == "TQC" else {}
    return getattr(library, name)(
        "MlpPolicy",
        gymnasium.make("Pendulum-v1") if env is None else env,
        **{
            "learning_starts": 40,
            "batch_size": 16,
            "buffer_size": 100,
            "policy_kwargs": kwargs,
            "seed": 0,
            "device": "cpu",
            **settings,
        },
    )


def four(normalised: bool = False):
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    envs = DummyVecEnv([lambda k=k: Numbered(k) for k in range(4)])
    return VecNormalize(envs) if normalised else envs


class Order(Probe):
    """What is stored, transition by transition, whenever something arrives."""

    name = "order"

    def __init__(self) -> None:
        self.events, self.stored = [], []

    def on_env_step(self, view, event):
        self.events.append(event)
        assert view.env_step == event.id + 1 <= view.replay.added

    def on_update(self, view, event):
        ids, rewards = [], []
        for some, batch in view.replay.chunks(7):
            ids += some.tolist()
            rewards += batch.reward.tolist()
        self.stored.append((view.replay.added, ids, rewards))


@pytest.mark.parametrize("train_freq", [1, 3])
def test_insertion_order_of_four_environments_through_wrap_around(tmp_path, train_freq):
    """25 rows of 4 and 240 transitions: the ring goes round more than twice."""
    from diagnostics.adapters.sb3 import ProbeCallback

    model = model_of("SAC", four(), train_freq=train_freq)
    drawn = []
    original = model.replay_buffer._get_samples

    def spied(rows, env=None):
        samples = original(rows, env=env)
        drawn.append(samples.rewards[:, 0].tolist())
        return samples

    model.replay_buffer._get_samples = spied
    probe = Order()
    callback = ProbeCallback(tmp_path, [probe, "critic_loss", "sample_counts"], window_steps=40)
    model.learn(240, callback=callback)
    added = model.num_timesteps
    assert [event.id for event in probe.events] == list(range(added))
    # Transition i is step i // 4 of environment i % 4, whose reward says exactly that.
    reward = [10.0 * (i // 4) + i % 4 for i in range(added)]
    assert [event.reward for event in probe.events] == reward
    for event in probe.events:
        life, env = event.id // 4 + 1, event.id % 4
        ended = life % (7 + 2 * env) == 0
        assert (event.terminated, event.truncated) == (
            ended and env % 2 == 0,
            ended and env % 2 == 1,
        )
    for so_far, ids, rewards in probe.stored:
        assert ids == list(range(max(0, so_far - 100), so_far))
        assert rewards == [reward[i] for i in ids]
    assert probe.stored[-1][0] == added
    # How often each was drawn, by what the update really got.
    ids = {value: i for i, value in enumerate(reward)}
    want = np.bincount([ids[r] for batch in drawn for r in batch], minlength=added)
    runs = diagnostics.load(tmp_path)
    assert np.array_equal(runs.table("sample_counts_full")["counts"].iloc[-1], want)
    fit = runs.table("sample_fit").iloc[-1]
    assert fit["draws"] == 16 * model._n_updates and abs(fit["z"]) < 4
    last = runs.critic_loss.query(f"env_step == {added}")
    assert last["count"].sum() == 100 and last["age"].iloc[-1] < last["age"].iloc[0]


@pytest.mark.parametrize(
    ("name", "envs"),
    [("SAC", 4), ("TD3", 4), ("DDPG", 1), ("TQC", 1), ("TQC", 4), ("CrossQ", 1), ("CrossQ", 4)],
)
def test_learns_the_same_with_probes_and_is_a_run(tmp_path, name, envs):
    from diagnostics.adapters.sb3 import ProbeCallback

    def made():
        return model_of(name, four(normalised=True) if envs == 4 else None)

    bare = made().learn(120)
    eval_env = Numbered(0) if envs == 4 else gymnasium.make("Pendulum-v1", max_episode_steps=30)
    home = tmp_path / "Task" / f"sb3-{name}" / "seed0"
    # What is named must work, and CrossQ's critic cannot be made anew.
    probes = ["all"] if name == "CrossQ" else CHEAP
    probed = made().learn(120, callback=ProbeCallback(home, probes, eval_env=eval_env))
    other = probed.policy.state_dict()
    for key, tensor in bare.policy.state_dict().items():
        assert torch.equal(tensor, other[key]), key
    assert np.array_equal(bare.replay_buffer.observations, probed.replay_buffer.observations)
    assert [m.training for m in bare.policy.modules()] == [
        m.training for m in probed.policy.modules()
    ]
    runs = diagnostics.load(tmp_path)
    assert runs.problems.empty, runs.problems.to_string()
    manifest = json.loads((home / "manifest.json").read_text())
    assert manifest["library"].endswith(name)
    refused = {"update_churn", "layer_norms.update_norm"}
    refused |= {"warmstart"} if name == "CrossQ" else set()
    refused |= {"offpolicy.log_prob"} if name in ("TD3", "DDPG") else set()
    assert set(manifest["unmeasured"]) == refused, manifest["unmeasured"]
    served = "critic_loss plasticity dormancy srank norms offpolicy interference sample_counts"
    for table in (*served.split(), "validation", "overestimation", "disagreement"):
        assert len(runs.table(table)) > 0, table
    assert len(runs.table("warmstart")) > 0 or name == "CrossQ"
    assert np.isfinite(runs.critic_loss["mean"]).all() and len(runs.evals) > 0


def batch_and_noise(model, rows=30):
    from diagnostics.adapters.sb3 import BufferMemory

    memory = BufferMemory(model.replay_buffer)
    batch = memory.take(np.arange(rows))
    memory.release()
    generator = torch.Generator().manual_seed(0)
    return batch, torch.randn(rows, 1, generator=generator)


def test_tqc_loss_is_the_library_s_own_and_its_squared_error_that_of_means(monkeypatch):
    from sb3_contrib.tqc import tqc
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    from diagnostics.adapters.sb3 import observed_by

    model = model_of("TQC").learn(90)
    batch, noise = batch_and_noise(model)
    observed = observed_by(model)
    found = observed.losses(batch, noise)["online"]
    rows = ReplayBufferSamples(
        batch.obs, batch.action, batch.next_obs, 1 - batch.bootstrap[:, None], batch.reward[:, None]
    )
    monkeypatch.setattr(model.replay_buffer, "sample", lambda *_, **__: rows)
    monkeypatch.setattr(
        torch.distributions.Normal, "rsample", lambda self: self.loc + self.scale * noise
    )
    caught = []
    loss = tqc.quantile_huber_loss

    def spied(current, target, **options):
        caught.append((current.detach().clone(), target.clone(), loss(current, target, **options)))
        return caught[-1][2]

    monkeypatch.setattr(tqc, "quantile_huber_loss", spied)
    model.ent_coef_optimizer = None
    model.ent_coef_tensor = model.log_ent_coef.detach().exp()
    model.train(1, 30)
    current, target, whole = caught[0]
    torch.testing.assert_close(found.loss.mean(), whole.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.quantiles, target[:, 0], rtol=1e-4, atol=1e-5)
    error = (current.mean(dim=2) - target.mean(dim=2)).square().sum(dim=1)
    torch.testing.assert_close(found.squared_error, error, rtol=1e-4, atol=1e-5)


def test_tqc_gradients_are_those_of_its_training_loss():
    from diagnostics.adapters.sb3 import observed_by

    model = model_of("TQC").learn(60)
    observed = observed_by(model)
    batch, noise = batch_and_noise(model)
    found = observed.gradients("online", batch, noise)
    params = {k: v.clone().requires_grad_() for k, v in observed.parameters("online").items()}
    loss = observed.loss("online", params, batch, noise)
    torch.testing.assert_close(loss.detach(), observed.losses(batch, noise)["online"].loss)
    for gradient, want in zip(
        found.values(), torch.autograd.grad(loss.mean(), list(params.values())), strict=True
    ):
        torch.testing.assert_close(gradient, want)
    assert observed.q_values("online", batch.obs, batch.action).shape == (3, 30)


def test_crossq_is_measured_in_evaluation_mode_only():
    from diagnostics.adapters.sb3 import observed_by

    model = model_of("CrossQ").learn(90)
    batch, noise = batch_and_noise(model)
    model.policy.set_training_mode(True)
    with pytest.raises(UserError, match=r"BatchRenorm1d\) is in training mode"):
        observed_by(model).losses(batch, noise)
    model.policy.set_training_mode(False)
    statistics = {k: v.clone() for k, v in model.policy.state_dict().items()}
    found = observed_by(model).losses(batch, noise)["online"]
    with torch.no_grad():
        values = torch.cat(model.critic(batch.obs, batch.action), dim=1)
        want = 0.5 * (values - found.target[:, None]).square().sum(dim=1)
    torch.testing.assert_close(found.loss, want)
    now = model.policy.state_dict()
    assert all(torch.equal(at, now[key]) for key, at in statistics.items())
    with pytest.raises(UserError, match="keeps running statistics"):
        observed_by(model).fresh("online", np.random.default_rng(0))


class Goals(Numbered):
    observation_space = gymnasium.spaces.Dict(
        dict.fromkeys(("observation", "achieved_goal", "desired_goal"), Numbered.observation_space)
    )  # fmt: skip

    def _obs(self):
        return dict.fromkeys(self.observation_space.keys(), super()._obs())

    def compute_reward(self, achieved, desired, info):
        return np.zeros(len(achieved))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"replay_buffer_class": "Her"}, "HER draws goals anew"),
        ({}, "observations are dictionaries"),
    ],
)
def test_her_and_dictionaries_are_refused_in_one_line(tmp_path, settings, message):
    from stable_baselines3 import SAC, HerReplayBuffer

    from diagnostics.adapters.sb3 import ProbeCallback

    kind = {"replay_buffer_class": HerReplayBuffer} if settings else {}
    model = SAC("MultiInputPolicy", Goals(0), device="cpu", learning_starts=30, **kind)
    with pytest.raises(UserError, match=message) as caught:
        model.learn(40, callback=ProbeCallback(tmp_path / "run"))
    assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()


def test_refused_models_are_left_as_they_were(tmp_path):
    from stable_baselines3.common.buffers import NStepReplayBuffer

    from diagnostics.adapters.sb3 import ProbeCallback

    model = model_of("SAC", use_sde=True)
    with pytest.raises(UserError, match="gSDE"):
        model.learn(60, callback=ProbeCallback(tmp_path / "run"))
    assert "_get_samples" not in vars(model.replay_buffer), "the buffer is not wrapped any more"
    model = model_of("SAC", n_steps=3)
    assert isinstance(model.replay_buffer, NStepReplayBuffer)
    with pytest.raises(UserError, match="plain ReplayBuffer"):
        model.learn(60, callback=ProbeCallback(tmp_path / "run"))
