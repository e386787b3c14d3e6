"""Probes in a loop of plain torch: the CleanRL-style example, and the buffer's real order."""

from __future__ import annotations

import functools
import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch

import diagnostics
from diagnostics.adapters.actor_critic import ActionBox, actor_critic
from diagnostics.adapters.loop import attach
from diagnostics.adapters.sb3_buffer import BufferMemory
from fog.cli import main as fog
from fog.errors import UserError
from fog.events import TransitionBatch

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "cleanrl_style_sac.py"
DOC = ROOT / "docs" / "foreign_agents.md"
TINY = ["--num-envs", "4", "--steps", "400", "--learning-starts", "100", "--batch-size", "32"]
TINY += ["--buffer-size", "200", "--width", "16"]
CHEAP = ["all", "warmstart:steps=5:batch=16", "plasticity:steps=3"]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("cleanrl_style_sac", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def recorded(script, tmp_path_factory):
    out = tmp_path_factory.mktemp("loop")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(script, "attach", functools.partial(attach, probes=CHEAP))
        script.main([*TINY, "--out", str(out)])
    return out


@pytest.fixture
def envs():
    made = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("Pendulum-v1")] * 4)
    yield made
    made.close()


def test_the_example_is_a_run_that_every_command_reads(recorded, capsys, tmp_path):
    runs = diagnostics.load(recorded)
    assert runs.problems.empty, runs.problems.to_string()
    row = runs.runs.iloc[0]
    assert (row["task"], row["variant"], row["seed"]) == ("Pendulum-v1", "cleanrl-style-sac", 0)
    assert (row["status"], row["env_step"], row["updates"]) == ("finished", 400, 75)
    table = runs.critic_loss
    assert sorted(table["env_step"].unique()) == list(range(40, 401, 40))
    last = table[table["env_step"] == 400]
    assert list(last["window"]) == [5, 6, 7, 8, 9] and last["count"].sum() == 200
    for name in ("warmstart", "plasticity", "srank", "norms", "offpolicy", "interference"):
        assert len(runs.table(name)) > 0, name
    fit = runs.table("sample_fit").iloc[-1]
    assert fit["draws"] == 75 * 32 and abs(fit["z"]) < 4
    assert fog(["compare", "--runs", str(recorded)]) == 0
    assert "cleanrl-style-sac" in capsys.readouterr().out


def test_what_could_not_be_measured_is_written_down(recorded):
    manifest = json.loads(next(recorded.rglob("manifest.json")).read_text())
    assert "critic_loss" in manifest["probes"] and "warmstart" in manifest["probes"]
    assert manifest["unmeasured"]["validation"] == "no evaluation episodes were given"
    assert manifest["unmeasured"]["evals"] == "no evaluation episodes were given"
    assert "only `ObservedModules` takes a function" in manifest["unmeasured"]["update_churn"]
    for name in set(manifest["probes"]) & set(manifest["unmeasured"]):
        assert name in ("validation", "overestimation"), name
    assert manifest["library"] == "plain torch"


def test_the_example_learns_the_same_with_probes(script, tmp_path, monkeypatch):
    seen = []

    def run(probed):
        def watched(*arguments, **settings):
            seen.append(settings["critics"])
            if probed:
                return attach(*arguments, probes=CHEAP, **settings)
            return SimpleNamespace(step=lambda updates: None, end=lambda: None)

        monkeypatch.setattr(script, "attach", watched)
        script.main([*TINY, "--steps", "240", "--out", str(tmp_path / str(probed))])

    run(False)
    run(True)
    bare, probed = ([p for critic in critics for p in critic.parameters()] for critics in seen)
    assert all(torch.equal(a, b) for a, b in zip(bare, probed, strict=True))


def test_attaching_takes_fifteen_lines():
    lines = EXAMPLE.read_text().splitlines()
    begin, end = (next(k for k, at in enumerate(lines) if f"# probes: {w}" in at)
                  for w in ("begin", "end"))  # fmt: skip
    single = [at for at in lines if "# probes: once" in at or "import attach" in at]
    assert end - begin - 1 + len(single) <= 15


def snippet() -> str:
    text = DOC.read_text()
    begin = text.index("```python\nfrom diagnostics.adapters.loop import attach")
    return text[begin + len("```python\n") : text.index("```", begin + 3)]


def test_the_documented_snippet_runs(script, envs, tmp_path, monkeypatch):
    code = [line for line in snippet().splitlines() if line.strip() and line.strip()[0] != "#"]
    assert len(code) <= 15
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    buffer = filled(script, envs, 60, 200)
    critics = [script.SoftQNetwork(3, 1, 8) for _ in range(4)]
    names = dict(zip(("qf1", "qf2", "qf1_target", "qf2_target"), critics, strict=True))
    args = SimpleNamespace(total_timesteps=240, batch_size=32, gamma=0.99, q_lr=1e-3)
    space = envs.single_action_space
    names |= {"rb": buffer, "args": args, "alpha": 0.2, "actor": script.Actor(3, space, 8)}
    exec(compile(snippet(), str(DOC), "exec"), names | {"updates": 1})
    runs = diagnostics.load(tmp_path)
    assert len(runs) == 1 and runs.problems.empty and len(runs.critic_loss) > 0


def filled(script, envs, steps, capacity):
    """Transition of step t and environment e has observation (t, e, 0) and reward 10 t + e."""
    buffer = script.ReplayBuffer(capacity, envs)
    for t in range(steps):
        add(buffer, t)
    return buffer


def add(buffer, t):
    rows = np.arange(buffer.n_envs)
    obs = np.stack([np.full(buffer.n_envs, t), rows, 0 * rows], 1)
    ended = rows == t % 7
    buffer.add(obs, obs + 0.5, (rows / 2)[:, None], 10.0 * t + rows, ended)


@pytest.mark.parametrize("early", [0, 7, 13])
def test_insertion_order_of_four_environments_through_wrap_around(script, envs, early):
    """A ring of 10 steps x 4; the probes join at the start, in the first round, in the second."""
    buffer = filled(script, envs, early, 40)
    memory = BufferMemory(buffer, actions=ActionBox(-2.0, 2.0).stretched)
    events, drawn = [], []
    rng = np.random.default_rng(0)
    for t in range(early, 47):
        add(buffer, t)
        events += memory.arrived()
        assert memory.added == 4 * (t + 1) and memory.size == min(40, 4 * (t + 1))
        if t % 3 == 0:
            rows = rng.integers(0, buffer.buffer_size if buffer.full else buffer.pos, 50)
            batch = buffer._get_samples(rows)
            ids = memory.drawn()
            want = 4 * batch.observations[:, 0] + batch.observations[:, 1]
            assert ids.tolist() == [want.int().tolist()]
            drawn.append(ids)
    assert [event.id for event in events] == list(range(4 * early, 4 * 47))
    assert [event.reward for event in events] == [
        10.0 * (event.id // 4) + event.id % 4 for event in events
    ]
    ended = [event.id for event in events if event.terminated]
    assert ended == [4 * t + t % 7 for t in range(early, 47) if t % 7 < 4]
    ids, batches = zip(*memory.chunks(7), strict=True)
    stored = np.concatenate(ids)
    assert stored.tolist() == list(range(4 * 37, 4 * 47)), "oldest first, age 39 to 0"
    obs = torch.cat([batch.obs for batch in batches])
    assert torch.equal(4 * obs[:, 0] + obs[:, 1], torch.from_numpy(stored).float())
    batch = memory.take(np.array([187, 148, 150]))
    assert batch.obs[:, :2].tolist() == [[46.0, 3.0], [37.0, 0.0], [37.0, 2.0]]
    assert batch.reward.tolist() == [463.0, 370.0, 372.0]
    assert batch.bootstrap.tolist() == [1.0, 1.0, 0.0], "step 37 ends environment 37 % 7 = 2"
    assert batch.action[:, 0].tolist() == [0.75, 0.0, 0.5]
    counts = np.bincount(np.concatenate(drawn).ravel(), minlength=memory.added)
    assert np.array_equal(memory.counts, counts)
    memory.release()
    buffer._get_samples(np.zeros(5, np.int64))
    assert memory.drawn() is None


def test_counting_leaves_the_global_stream_alone(script, envs):
    draws = []
    for watched in (False, True):
        buffer = filled(script, envs, 20, 40)
        memory = BufferMemory(buffer) if watched else None
        np.random.seed(3)  # noqa: NPY002
        draws.append([buffer.sample(6).rewards.tolist() for _ in range(5)])
        assert memory is None or memory.drawn().shape == (5, 6)
    assert draws[0] == draws[1]


def test_a_buffer_that_draws_otherwise_is_refused(script, envs):
    buffer = filled(script, envs, 20, 40)
    original = type(buffer)._get_samples

    def other(rows):
        np.random.rand()  # noqa: NPY002
        return original(buffer, rows)

    buffer._get_samples = other
    BufferMemory(buffer)
    with pytest.raises(UserError, match="draws environments in another way"):
        buffer.sample(4)


def test_the_loss_is_the_script_s_own(script, envs, monkeypatch):
    torch.manual_seed(0)
    space = envs.single_action_space
    actor = script.Actor(3, space, 8)
    q1, q2, t1, t2 = (script.SoftQNetwork(3, 1, 8) for _ in range(4))
    agent = actor_critic(
        [q1, q2],
        actor,
        1,
        target_critics=[t1, t2],
        discount=0.9,
        temperature=0.3,
        actions=ActionBox(space.low, space.high),
    )
    rows = TransitionBatch(*(torch.randn(shape) for shape in ((9, 3), (9, 1), (9,), (9,), (9, 3))))
    rows = rows._replace(bootstrap=torch.tensor([1.0, 0.0, 1.0] * 3), action=rows.action.tanh())
    noise = torch.randn(9, 1)
    monkeypatch.setattr(
        torch.distributions.Normal, "rsample", lambda self: self.loc + self.scale * noise
    )
    with torch.no_grad():
        action, log_pi = actor.get_action(rows.next_obs)
        q_next = torch.min(t1(rows.next_obs, action), t2(rows.next_obs, action)) - 0.3 * log_pi
        target = rows.reward + rows.bootstrap * 0.9 * q_next.view(-1)
        own = 2.0 * rows.action
        want = sum((q(rows.obs, own).view(-1) - target).square() for q in (q1, q2))
        found = agent.losses(rows, noise)["online"]
        pi, log_pi = actor.get_action(rows.obs)
        actor_loss = 0.3 * log_pi - torch.min(q1(rows.obs, pi), q2(rows.obs, pi))
    torch.testing.assert_close(found.loss, want, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.target, target, rtol=1e-4, atol=1e-4)
    mine = agent._network_loss("actor", rows, noise)()
    torch.testing.assert_close(mine, actor_loss.view(-1), rtol=1e-4, atol=1e-4)
    mean = torch.tanh(actor(rows.obs)[0]).detach()
    torch.testing.assert_close(agent.action(rows.obs), mean)


class TwoValues(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)

    def forward(self, obs, action):
        return self.fc(torch.cat([obs, action], 1))


def test_mistakes_are_named_in_one_line(script, envs, tmp_path):
    space = envs.single_action_space
    actor, q = script.Actor(3, space, 8), script.SoftQNetwork(3, 1, 8)
    usual = {"critics": [q], "policy": actor, "steps": 40, "batch_size": 8}

    def start(name, steps=20, **changes):
        buffer = filled(script, envs, steps, 40)
        made = attach(tmp_path / name, **(usual | {"replay": buffer} | changes))
        made.step(1)

    def refused(match, name, **changes):
        with pytest.raises(UserError, match=match) as caught:
            start(name, **changes)
        assert "\n" not in str(caught.value)

    refused(r"critic 0 returned shape \(40, 2\)", "a", critics=[TwoValues()])
    refused("single_action_space", "b", action_space=envs.action_space)
    refused("no critic was given", "c", critics=[])
    refused("cannot read this dict", "d", replay={}, action_space=space)
    refused(r"loss cannot be computed.*obs \(40, 3\)", "e", critics=[script.SoftQNetwork(5, 1, 8)])
    refused(r"policy returned shape \(40, 2\)", "f",
            policy=lambda obs: torch.zeros(len(obs), 2), targets=lambda b, _: b.reward)  # fmt: skip
    refused(r"targets have shape \(3,\)", "g", targets=lambda batch, _: batch.reward[:3])
    dropping = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(4, 1))
    refused(r"Dropout.*\.eval\(\)", "h", critics=[dropping], joined=True)
    start("i")
    refused("already holds a run", "i")
