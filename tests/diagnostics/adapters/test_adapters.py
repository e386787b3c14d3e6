"""Probes on agents that are not ours: any torch critic, and Stable-Baselines3."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from diagnostics.adapters.memory import IterableMemory
from diagnostics.adapters.modules import ObservedModules, Policy
from diagnostics.adapters.observer import Observer
from fog.errors import UserError
from fog.events import EnvStep, Facts, Probe, TransitionBatch
from fog.system.extras import install

OBS, ACT, SIZE = 3, 2, 50
FACTS = Facts(
    seed=0,
    steps=SIZE,
    window_steps=20,
    batch_size=8,
    discount=0.9,
    capacity=SIZE,
    sampler="uniform",
)

# `make test-slow` installs it and says so: there a missing one is a failure.
needs_sb3 = pytest.mark.skipif(
    importlib.util.find_spec("stable_baselines3") is None and "FOG_ALL_TESTS" not in os.environ,
    reason=f"stable-baselines3 is not installed: {install('sb3')}",
)


def read(directory: Path, table: str) -> pd.DataFrame:
    parts = sorted((directory / "probes" / table).glob("*.parquet"))
    return pd.concat([pd.read_parquet(part) for part in parts], ignore_index=True)


def mlp(inputs: int, outputs: int, *extra: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), *extra,
                         nn.Linear(8, outputs))  # fmt: skip


class Agent:
    """A TD3-like agent of somebody else."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.twins = [mlp(OBS + ACT, 1) for _ in range(2)]
        self.actor = mlp(OBS, ACT)
        rng = np.random.default_rng(0)
        self.buffer = TransitionBatch(
            *(
                torch.from_numpy(rng.standard_normal(shape).astype(np.float32))
                for shape in ((SIZE, OBS), (SIZE, ACT), (SIZE,), (SIZE,), (SIZE, OBS))
            )
        )._replace(bootstrap=torch.ones(SIZE))

    def act(self, obs):
        return torch.tanh(self.actor(obs))

    def q(self, obs, action):
        return torch.stack([twin(torch.cat([obs, action], -1))[:, 0] for twin in self.twins])

    def target(self, batch, noise):
        action = (self.act(batch.next_obs) + 0.1 * noise).clamp(-1, 1)
        value = self.q(batch.next_obs, action).min(dim=0).values
        return batch.reward + 0.9 * batch.bootstrap * value

    def observed(self) -> ObservedModules:
        def actor_loss(batch, noise):
            return -self.q(batch.obs, self.act(batch.obs))[0]

        policy = Policy(self.actor, self.act, actor_loss)
        return ObservedModules(self.twins, self.target, ACT, policy=policy, rows=16)

    def memory(self) -> IterableMemory:
        def batches():
            for start in range(0, SIZE, 16):
                yield TransitionBatch(*(column[start : start + 16] for column in self.buffer))

        return IterableMemory(batches, lambda: SIZE)


PROBES = (
    "critic_loss:raw",
    "churn",
    "curvature:steps=4",
    "disagreement",
    "dormancy",
    "features:size=20",
    "srank",
    "norms",
    "plasticity",
    "interference",
    "offpolicy",
    "warmstart:steps=20",
)


@pytest.fixture
def agent() -> Agent:
    return Agent()


def test_any_torch_critic(tmp_path, agent):
    before = [p.clone() for module in (*agent.twins, agent.actor) for p in module.parameters()]
    state = torch.get_rng_state()
    observer = Observer(agent.observed(), agent.memory(), FACTS, tmp_path, PROBES)
    observer.start()
    observer.advance(SIZE, 10)
    observer.end()
    assert torch.equal(torch.get_rng_state(), state), "the global stream was used"
    parameters = [p for module in (*agent.twins, agent.actor) for p in module.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(before, parameters, strict=True))
    assert all(p.grad is None for p in parameters)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in agent.twins[0].modules())

    from fog import seeding

    noise = seeding.generator(0, "probe/critic_loss").standard_normal((SIZE, ACT), dtype=np.float32)
    with torch.no_grad():
        target = agent.target(agent.buffer, torch.from_numpy(noise))
        loss = (agent.q(agent.buffer.obs, agent.buffer.action) - target).square().sum(dim=0)
    raw = read(tmp_path, "critic_loss_raw").iloc[0]["loss"]
    np.testing.assert_allclose(raw, loss.numpy(), rtol=1e-5, atol=1e-6)
    table = read(tmp_path, "critic_loss")
    first = table[table["env_step"] == SIZE].drop_duplicates("window").set_index("window")
    assert first.loc[1, "mean"] == pytest.approx(loss[20:40].double().mean().item(), rel=1e-6)

    features = read(tmp_path, "features")
    ids = features["transition"].to_numpy().copy()
    inputs = torch.cat([agent.buffer.obs, agent.buffer.action], -1)[ids]
    wanted = agent.twins[0][:-1](inputs).detach().numpy()
    np.testing.assert_allclose(np.stack(features["features"]), wanted, rtol=1e-5, atol=1e-6)

    dormancy = read(tmp_path, "dormancy").query("network == 'online' and member == 1")
    assert list(dormancy["layer"]) == ["1", "3"]
    hidden = agent.twins[1][:2](torch.cat([agent.buffer.obs, agent.buffer.action], -1))
    np.testing.assert_allclose(
        dormancy.iloc[0]["activation"], hidden.abs().mean(dim=0).detach(), rtol=1e-5
    )
    offpolicy = read(tmp_path, "offpolicy").drop_duplicates("window").set_index("window")
    assert offpolicy["log_prob"].isna().all(), "a deterministic policy has no density"
    away = (agent.buffer.action - agent.act(agent.buffer.obs)).norm(dim=1).detach()
    assert offpolicy.loc[1, "distance"] == pytest.approx(away[20:40].mean().item(), rel=1e-5)
    assert np.isfinite(read(tmp_path, "warmstart")["gap"]).all()
    assert np.isfinite(read(tmp_path, "interference")["cosine"]).all()

    counts = read(tmp_path, "norms").set_index("network")["parameters"]
    assert counts["actor"] == sum(p.numel() for p in agent.actor.parameters())

    window = read(tmp_path, "disagreement").set_index("window").iloc[1]
    with torch.no_grad():
        q = agent.q(agent.buffer.obs, agent.buffer.action)[:, 20:40]
    assert window["disagreement"] == pytest.approx((q[0] - q[1]).abs().mean().item(), rel=1e-5)
    assert len(read(tmp_path, "curvature").iloc[0]["eigenvalues"]) == 4
    # Nobody told how this agent is updated.
    layers = read(tmp_path, "layer_norms")
    assert layers["update_norm"].isna().all() and (layers["birth_distance"] == 0).all()
    assert not (tmp_path / "probes" / "update_churn").exists()


def test_what_one_update_changes_of_somebody_s_agent(tmp_path, agent):
    """The owner's update, plain descent on the first twin's bias and on the policy's."""

    def update(batch, noise):
        assert noise.shape == (2, len(batch.reward), ACT) and len(batch.reward) == 8
        other = Agent()
        with torch.no_grad():
            other.twins[0][-1].bias += 0.5
            other.actor[-1].bias += 0.1
        return observed_by(other)

    def observed_by(some):
        policy = Policy(
            some.actor,
            some.act,
            lambda batch, noise: -some.q(batch.obs, some.act(batch.obs))[0],
            gaussian=lambda obs: (some.actor(obs), torch.zeros(len(obs), ACT)),
        )
        return ObservedModules(some.twins, some.target, ACT, policy=policy, rows=16, update=update)

    observer = Observer(observed_by(agent), agent.memory(), FACTS, tmp_path, ["norms", "churn"])
    observer.start()
    observer.advance(10, 1)
    layers = read(tmp_path, "layer_norms")
    moved = layers[layers["update_norm"] > 0].set_index("network")
    assert moved.loc["online", ["layer", "parameter"]].tolist() == ["0.4", "bias"]
    assert moved.loc["online", "update_norm"] == pytest.approx(0.5)
    assert moved.loc["actor", "update_norm"] == pytest.approx(0.1 * np.sqrt(ACT))
    churn = read(tmp_path, "update_churn").iloc[0]
    assert churn["q_churn"] == pytest.approx(0.25)
    assert churn["policy_kl"] == pytest.approx(ACT * 0.1**2 / 2, rel=1e-5)


class Stepping(Probe):
    """Somebody's probe of single steps."""

    name = "stepping"

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, int, float]] = []
        self.events: list[EnvStep] = []

    def on_env_step(self, view, event):
        stored = view.replay.take(np.array([event.id])).reward.item()
        self.seen.append((event.id, view.env_step, view.replay.added, stored))
        self.events.append(event)


def test_an_observer_passes_on_steps_and_changes(tmp_path, agent):
    probe = Stepping()
    observer = Observer(agent.observed(), agent.memory(), FACTS, tmp_path, ["dormancy", probe])
    observer.start()
    observer.added(EnvStep(6, 0.0, False, False))
    assert probe.seen == [(6, 7, SIZE, agent.buffer.reward[6].item())]
    observer.advance(10, 1)
    observer.change("reset", "before")
    with torch.no_grad():
        agent.actor[-1].weight.add_(1.0)
    observer.change("reset", "after")
    table = read(tmp_path, "dormancy")
    assert list(table["phase"].unique()) == ["cadence", "before reset", "after reset"]
    sides = [table[table["phase"] == f"{side} reset"] for side in ("before", "after")]
    both = sides[0].merge(sides[1], on=["network", "layer", "member"])
    assert len(both) == 6
    for _, row in both.iterrows():
        # The same batch on both sides, and only the policy's last layer was changed.
        assert np.array_equal(row["activation_x"], row["activation_y"])
        assert not np.array_equal(row["gradient_x"], row["gradient_y"])


def test_hidden_gradients_by_the_chain_rule(agent):
    """d loss / d z of the last hidden layer, h = tanh(z), is 2 (Q - y) w (1 - h^2)."""
    noise = torch.zeros(SIZE, ACT)
    hidden = agent.observed().hidden("online", agent.buffer, noise)
    with torch.no_grad():
        error = agent.q(agent.buffer.obs, agent.buffer.action) - agent.target(agent.buffer, noise)
        for member, twin in enumerate(agent.twins):
            h = hidden["3"].output[member]
            wanted = 2 * error[member][:, None] * twin[-1].weight * (1 - h.square())
            torch.testing.assert_close(hidden["3"].gradient[member], wanted)


class Shared(nn.Module):
    """LayerNorm, and one activation module for both layers, which works in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(OBS + ACT, 8), nn.LayerNorm(8)
        self.act = nn.ReLU(inplace=True)
        self.second, self.head = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x):
        h = 3.0 * self.act(self.norm(self.first(x)))
        return self.head(self.act(self.second(h)))


def test_gradients_at_the_input_of_any_activation_module():
    """Against retained gradients; a dead neuron scores exactly 0, whatever lies above it."""
    torch.manual_seed(0)
    twin = Shared().double()
    with torch.no_grad():
        twin.norm.weight[5], twin.norm.bias[5] = 0.0, -1.0
        twin.second.bias[2] = -1e3
    buffer = TransitionBatch(*(part.double() for part in Agent().buffer))
    observed = ObservedModules([twin], lambda batch, _: batch.reward, ACT)
    hidden = observed.hidden("online", buffer, torch.zeros(SIZE, ACT))
    assert list(hidden) == ["act", "act#2"]

    first = twin.norm(twin.first(torch.cat([buffer.obs, buffer.action], -1)))
    second = twin.second(3.0 * first.clamp(min=0))
    loss = (twin.head(second.clamp(min=0))[:, 0] - buffer.reward).square().sum()
    for name, z, grad in zip(
        hidden, (first, second), torch.autograd.grad(loss, [first, second]), strict=True
    ):
        found = hidden[name]
        torch.testing.assert_close(found.output[0], z.detach().clamp(min=0))
        alive = z > 0
        torch.testing.assert_close(found.gradient[0][alive], grad[alive])
        assert (found.gradient[0][~alive] == 0).all()
    assert (hidden["act"].gradient[..., 5] == 0).all()
    assert (hidden["act#2"].gradient[..., 2] == 0).all()
    assert (hidden["act"].gradient != 0).any()


def test_replay_iterator(agent):
    memory = agent.memory()
    batch = memory.take(np.array([40, 3, 17, 3]))
    assert torch.equal(batch.obs, agent.buffer.obs[[40, 3, 17, 3]])
    assert sum(len(ids) for ids, _ in memory.chunks(1)) == SIZE
    with pytest.raises(UserError, match="does not count"):
        _ = memory.counts


def test_what_would_not_be_neutral_is_refused(agent):
    agent.twins[0].insert(2, nn.Dropout(0.1))
    with pytest.raises(UserError, match=r"Dropout.*eval"):
        agent.observed().losses(agent.buffer, torch.zeros(SIZE, ACT))
    agent.twins[0].eval()
    agent.observed().losses(agent.buffer, torch.zeros(SIZE, ACT))
    without = ObservedModules(agent.twins, agent.target, ACT)
    assert without.networks == ("online",)
    with pytest.raises(UserError, match="no policy"):
        without.action(agent.buffer.obs)


def test_a_fresh_critic_of_somebody_else(agent):
    observed = agent.observed()
    state = torch.get_rng_state()
    one, same, other = (observed.fresh("online", np.random.default_rng(s)) for s in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state), "the global stream was used"
    live = observed.parameters("online")
    assert one.keys() == live.keys()
    for name, tensor in one.items():
        assert tensor.shape == live[name].shape and torch.equal(tensor, same[name])
        assert not torch.equal(tensor, other[name]) and not torch.equal(tensor, live[name])
    assert not torch.equal(one["0.0.weight"], one["1.0.weight"])

    def zeros(module):
        for parameter in module.parameters():
            parameter.zero_()

    given = ObservedModules(agent.twins, agent.target, ACT, init=zeros)
    assert not any(t.any() for t in given.fresh("online", np.random.default_rng(0)).values())


def test_what_a_probe_lacks_is_said_before_training(tmp_path, agent):
    without = ObservedModules(agent.twins, agent.target, ACT)
    with pytest.raises(UserError, match=r"^probe 'offpolicy': it needs the policy"):
        Observer(without, agent.memory(), FACTS, tmp_path, ["offpolicy"]).start()

    class Gain(nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = nn.Parameter(torch.ones(8))

        def forward(self, x):
            return self.gain * x

    agent.twins[1].insert(2, Gain())
    observed = ObservedModules(agent.twins, agent.target, ACT)
    with pytest.raises(UserError, match=r"^probe 'warmstart': 2 \(Gain\) has no reset_parameters"):
        Observer(observed, agent.memory(), FACTS, tmp_path, ["warmstart"]).start()


def sb3_model(name: str, **settings):
    import gymnasium
    import stable_baselines3

    return getattr(stable_baselines3, name)(
        "MlpPolicy",
        gymnasium.make("Pendulum-v1"),
        learning_starts=60,
        batch_size=16,
        buffer_size=150,
        policy_kwargs={"net_arch": [8, 8]},
        seed=0,
        device="cpu",
        **settings,
    )


@needs_sb3
@pytest.mark.parametrize("name", ["SAC", "TD3"])
def test_sb3_agent_learns_the_same_with_probes(tmp_path, name):
    import gymnasium

    from diagnostics.adapters.sb3 import ProbeCallback

    # SB3 draws from global streams that its constructor seeds: one agent after the other.
    bare = sb3_model(name).learn(260)
    callback = ProbeCallback(
        tmp_path, window_steps=50, eval_env=gymnasium.make("Pendulum-v1"), eval_every=100
    )
    probed = sb3_model(name).learn(260, callback=callback)
    other = dict(probed.policy.named_parameters())
    for key, tensor in bare.policy.named_parameters():
        assert torch.equal(tensor, other[key]), key
    assert np.array_equal(bare.replay_buffer.observations, probed.replay_buffer.observations)
    table = read(tmp_path, "critic_loss")
    assert sorted(table["env_step"].unique()) == [50, 100, 150, 200, 250, 260]
    last = table[table["env_step"] == 260]
    assert list(last["window"]) == [2, 3, 4, 5] and last["count"].sum() == 150
    fit = read(tmp_path, "sample_fit").iloc[-1]
    assert fit["draws"] == 16 * probed._n_updates and abs(fit["z"]) < 4
    served = ("dormancy", "features", "churn", "overestimation", "validation", "plasticity")
    for each in (*served, "disagreement", "layer_norms", "srank"):
        assert len(read(tmp_path, each)) > 0
    assert not (tmp_path / "probes" / "update_churn").exists()
    assert np.isfinite(read(tmp_path, "warmstart")["gap"]).any()
    assert len(read(tmp_path, "interference_rank")) == 6
    assert read(tmp_path, "offpolicy")["log_prob"].isna().all() == (name == "TD3")


@needs_sb3
def test_sb3_log_density_is_that_of_its_own_distribution():
    from diagnostics.adapters.sb3 import observed_by

    model = sb3_model("SAC", learning_rate=7e-4)
    observed = observed_by(model)
    obs = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    action, density = model.actor.action_log_prob(obs)
    # SB3 adds 1e-6 inside the logarithm of the slope.
    torch.testing.assert_close(observed.log_prob(obs, action), density.detach(), rtol=0, atol=1e-3)
    assert observed.critic_lr() == pytest.approx(7e-4)


@needs_sb3
@pytest.mark.parametrize("train_freq", [1, 7, (1, "episode")])
def test_sb3_tells_of_every_step_once_it_is_stored(tmp_path, train_freq):
    from diagnostics.adapters.sb3 import ProbeCallback

    probe = Stepping()
    model = sb3_model("SAC", train_freq=train_freq)
    callback = ProbeCallback(tmp_path, [probe, "sample_counts"], window_steps=50)
    model.learn(260, callback=callback)
    steps = model.num_timesteps
    ids, env_steps, added, stored = zip(*probe.seen, strict=True)
    assert ids == tuple(range(steps)) and env_steps == added == tuple(range(1, steps + 1))
    assert stored == tuple(event.reward for event in probe.events) and any(stored)
    # A Pendulum episode is cut off after 200 steps and never ends by itself.
    assert [event.id for event in probe.events if event.truncated] == list(range(199, steps, 200))
    assert not any(event.terminated for event in probe.events)
    fit = read(tmp_path, "sample_fit").iloc[-1]
    assert fit["draws"] == 16 * model._n_updates and fit["transitions"] == steps


@needs_sb3
@pytest.mark.parametrize("name", ["SAC", "TD3"])
def test_sb3_loss_is_the_library_s_own(tmp_path, monkeypatch, name):
    """SB3's train(), caught in the act, on the noise that the observed is given."""
    from diagnostics.adapters.sb3 import BufferMemory, observed_by

    model = sb3_model(name)
    model.learn(100)
    batch = BufferMemory(model.replay_buffer).take(np.arange(30))
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal((30, 1)).astype(np.float32))
    found = observed_by(model).losses(batch, noise)["online"]

    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    rows = ReplayBufferSamples(
        batch.obs, batch.action, batch.next_obs, 1 - batch.bootstrap[:, None], batch.reward[:, None]
    )
    monkeypatch.setattr(model.replay_buffer, "sample", lambda *_, **__: rows)
    monkeypatch.setattr(torch, "normal", lambda *_, **__: noise)
    monkeypatch.setattr(
        torch.distributions.Normal, "rsample", lambda self: self.loc + self.scale * noise
    )
    monkeypatch.setattr(torch.Tensor, "normal_", lambda self, mean, std: self.copy_(noise * std))
    caught = []
    monkeypatch.setattr(
        torch.nn.functional,
        "mse_loss",
        lambda q, y: caught.append((q - y).detach()) or ((q - y) ** 2).mean(),
    )
    if name == "SAC":
        model.ent_coef_optimizer = None
        model.ent_coef_tensor = model.log_ent_coef.detach().exp()
    model.train(1, 30)
    wanted = sum(error[:, 0] ** 2 for error in caught) * (0.5 if name == "SAC" else 1.0)
    torch.testing.assert_close(found.loss, wanted, rtol=1e-5, atol=1e-5)


@needs_sb3
def test_sb3_limits_are_named(tmp_path):
    import stable_baselines3

    from diagnostics.adapters.sb3 import BufferMemory, observed_by

    with pytest.raises(UserError, match="gSDE"):
        observed_by(sb3_model("SAC", use_sde=True))
    with pytest.raises(UserError, match="SAC, TD3, DDPG"):
        observed_by(stable_baselines3.PPO("MlpPolicy", "Pendulum-v1", device="cpu"))
    model = sb3_model(
        "SAC",
        optimize_memory_usage=True,
        replay_buffer_kwargs={"handle_timeout_termination": False},
    )
    with pytest.raises(UserError, match="optimize_memory_usage"):
        BufferMemory(model.replay_buffer)


@needs_sb3
def test_sb3_example_draws_a_heatmap(tmp_path, monkeypatch):
    import runpy
    import sys

    example = Path(__file__).parents[3] / "examples" / "sb3_heatmap.py"
    monkeypatch.setattr(sys, "argv", ["sb3_heatmap.py", "--steps", "700", "--out", str(tmp_path)])
    runpy.run_path(str(example), run_name="__main__")
    assert (tmp_path / "heatmap.png").stat().st_size > 10_000
