"""Signs of primacy bias in networks and a file of transitions, without a training loop."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import diagnostics
from diagnostics.adapters.actor_critic import ActionBox
from diagnostics.adapters.checkpoint import record_checkpoint
from diagnostics.adapters.transitions import StoredTransitions
from fog.cli import main as fog
from fog.errors import UserError
from fog.events import Episode

OBS, ACT, SIZE = 3, 2, 200
FAST = ["all", "warmstart:steps=5:batch=16", "plasticity:steps=3"]


class Critic(nn.Module):
    def __init__(self, *extra):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(OBS + ACT, 8), nn.ReLU(), *extra, nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)
        )

    def forward(self, obs, action):
        return self.body(torch.cat([obs, action], -1))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(OBS, 8), nn.ReLU(), nn.Linear(8, 2 * ACT))

    def forward(self, obs):
        mean, log_std = self.body(obs).chunk(2, dim=-1)
        return mean, log_std.clamp(-3, 1)


def transitions() -> dict[str, np.ndarray]:
    """In no order: row k has reward and age of its own."""
    rng = np.random.default_rng(0)
    age = rng.permutation(SIZE)
    return {
        "obs": rng.standard_normal((SIZE, OBS)).astype(np.float32),
        "action": rng.uniform(-2, 2, (SIZE, ACT)).astype(np.float32),
        "reward": (SIZE - 1.0 - age).astype(np.float32),
        "terminated": (age % 10 == 0),
        "next_obs": rng.standard_normal((SIZE, OBS)).astype(np.float32),
        "age": age,
    }


@pytest.fixture
def networks():
    torch.manual_seed(0)
    return {
        "critics": [Critic(), Critic()],
        "target_critics": [Critic(), Critic()],
        "policy": Actor(),
        "temperature": 0.2,
        "actions": ActionBox(-2.0, 2.0),
        "probes": FAST,
    }


def test_a_checkpoint_is_a_run_that_every_command_reads(tmp_path, networks, capsys):
    np.savez(tmp_path / "buffer.npz", **transitions())
    out = tmp_path / "runs" / "Ant-v5" / "theirs" / "seed3"
    state = torch.get_rng_state()
    before = [p.clone() for critic in networks["critics"] for p in critic.parameters()]
    record_checkpoint(out, tmp_path / "buffer.npz", **networks, env_step=1000, seed=3)
    assert torch.equal(torch.get_rng_state(), state), "the global stream was used"
    after = [p for critic in networks["critics"] for p in critic.parameters()]
    assert all(torch.equal(a, b) and b.grad is None for a, b in zip(before, after, strict=True))

    runs = diagnostics.load(tmp_path / "runs")
    assert runs.problems.empty, runs.problems.to_string()
    row = runs.runs.iloc[0]
    assert (row["task"], row["variant"], row["seed"]) == ("Ant-v5", "theirs", 3)
    assert (row["status"], row["env_step"]) == ("finished", 1000)
    tables = "warmstart plasticity srank norms offpolicy interference dormancy disagreement"
    for name in tables.split():
        assert len(runs.table(name)) > 0, name
    assert np.isfinite(runs.table("offpolicy")["log_prob"]).all()
    assert runs.table("layer_norms")["birth_distance"].isna().all(), "nobody knows the birth"

    manifest = json.loads((out / "manifest.json").read_text())
    why = manifest["unmeasured"]
    assert why["churn"] == "a checkpoint is one moment: it needs two"
    assert why["sample_counts"] == "a file of transitions does not say how often each was drawn"
    assert why["layer_norms.birth_distance"] == "the initial weights are not known"
    assert why["validation"] == "no evaluation episodes were given"
    assert "churn" not in manifest["probes"] and "sample_counts" not in manifest["probes"]

    assert fog(["compare", "--runs", str(tmp_path / "runs")]) == 0
    assert "theirs" in capsys.readouterr().out
    page = tmp_path / "report.html"
    assert fog(["report", "--runs", str(tmp_path / "runs"), "--out", str(page)]) == 0
    assert "theirs" in page.read_text()


def test_losses_by_insertion_window_are_those_of_the_rows_with_these_ages(tmp_path, networks):
    columns = transitions()
    networks["probes"] = ["critic_loss:raw"]
    networks["targets"] = lambda batch, noise: 3.0 * batch.reward * batch.bootstrap
    record_checkpoint(tmp_path, columns, **networks, env_step=1000)
    oldest_first = np.argsort(-columns["age"])
    rows = {name: torch.tensor(column[oldest_first]) for name, column in columns.items()}
    with torch.no_grad():
        q = [critic(rows["obs"], rows["action"])[:, 0] for critic in networks["critics"]]
        target = 3.0 * rows["reward"] * ~rows["terminated"]
        want = sum((each - target).square() for each in q).double().numpy()
    raw = pd.read_parquet(next((tmp_path / "probes" / "critic_loss_raw").iterdir())).iloc[0]
    assert raw["first"] == 800
    np.testing.assert_allclose(raw["loss"], want, rtol=1e-4)
    table = diagnostics.load(tmp_path).critic_loss
    assert list(table["window_start"]) == list(range(800, 1000, 20))
    np.testing.assert_allclose(table["mean"], want.reshape(10, 20).mean(axis=1), rtol=1e-4)
    assert table["age"].iloc[0] == 189.5 and table["age"].iloc[-1] == 9.5


def test_deterministic_policies_and_target_smoothing(tmp_path, networks):
    actor, critics = networks["policy"], networks["critics"]
    networks |= {"policy": lambda obs: 2.0 * torch.tanh(actor(obs)[0]), "target_noise": 0.2}
    networks["probes"] = ["critic_loss:raw", "offpolicy"]
    columns = transitions()
    record_checkpoint(tmp_path, columns, **networks, discount=0.9)
    why = json.loads((tmp_path / "manifest.json").read_text())["unmeasured"]
    assert why["offpolicy.log_prob"] == "a deterministic policy has no density"

    from fog import seeding

    noise = seeding.generator(0, "probe/critic_loss").standard_normal((SIZE, ACT), dtype=np.float32)
    order = np.argsort(-columns["age"])
    rows = {name: torch.tensor(column[order]) for name, column in columns.items()}
    with torch.no_grad():
        smooth = torch.from_numpy(noise).mul(0.2).clamp(-0.5, 0.5)
        action = 2.0 * (torch.tanh(actor(rows["next_obs"])[0]) + smooth).clamp(-1, 1)
        values = [target(rows["next_obs"], action) for target in networks["target_critics"]]
        y = rows["reward"] + 0.9 * ~rows["terminated"] * torch.min(*values)[:, 0]
        want = sum((q(rows["obs"], rows["action"])[:, 0] - y).square() for q in critics)
    raw = pd.read_parquet(next((tmp_path / "probes" / "critic_loss_raw").iterdir())).iloc[0]
    np.testing.assert_allclose(raw["loss"], want.numpy(), rtol=1e-4)


def test_functions_are_evaluated_and_not_looked_into(tmp_path, networks):
    """As of an agent in another framework, that returns numpy arrays."""
    first, actor = networks["critics"][0], networks["policy"]
    networks |= {
        "critics": [lambda obs, action: first(obs, action).detach().numpy()],
        "target_critics": None,
        "policy": lambda obs: tuple(part.detach().numpy() for part in actor(obs)),
    }
    record_checkpoint(tmp_path, transitions(), **(networks | {"probes": ["all"]}))
    runs = diagnostics.load(tmp_path)
    assert len(runs.critic_loss) == 10 and len(runs.table("offpolicy")) == 10
    why = json.loads((tmp_path / "manifest.json").read_text())["unmeasured"]
    for name in ("norms", "plasticity", "warmstart", "interference", "disagreement"):
        assert why[name] == "critic 0 has no torch parameters: only its output is seen", name
    assert why["srank"] == "critic 0 has no nn.Linear layer to look at"
    assert "dormancy" in why


def test_without_a_policy(tmp_path, networks):
    networks |= {"policy": None, "targets": lambda batch, noise: batch.reward}
    record_checkpoint(tmp_path, transitions(), **networks)
    runs = diagnostics.load(tmp_path)
    assert len(runs.critic_loss) == 10 and set(runs.table("norms")["network"]) == {"online"}
    why = json.loads((tmp_path / "manifest.json").read_text())["unmeasured"]
    assert why["offpolicy"].startswith("it needs the policy")


def test_evaluation_episodes_serve_validation(tmp_path, networks):
    rng = np.random.default_rng(1)
    episode = Episode(
        rng.standard_normal((31, OBS)).astype(np.float32),
        rng.uniform(-1, 1, (30, ACT)).astype(np.float32),
        np.ones(30, np.float32),
        terminated=False,
    )
    record_checkpoint(tmp_path, transitions(), **networks, episodes=[episode, episode])
    runs = diagnostics.load(tmp_path)
    assert len(runs.table("validation")) == 1 and len(runs.table("overestimation")) == 1
    assert list(runs.evals["return"]) == [30.0, 30.0]
    why = json.loads((tmp_path / "manifest.json").read_text())["unmeasured"]
    assert "validation" not in why and "evals" not in why


def without(name):
    return lambda columns: columns.pop(name)


def changed(name, change):
    return lambda columns: columns.update({name: change(columns[name])})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without("age"), "lack the columns age: without ages nothing is old or new"),
        (without("reward"), "lack the columns reward"),
        (changed("reward", lambda r: r[:, None]), r"column reward has shape \(200, 1\): \(N,\)"),
        (changed("action", lambda a: a[:-1]), r"column action has shape \(199, 2\)"),
        (changed("next_obs", lambda o: o[:, :2]), r"obs has shape .*, next_obs"),
        (changed("age", lambda a: a // 2), r"numbers 0 to 199.*age 0 comes 2 times"),
        (changed("age", lambda a: a * 3), "they lie between 0 and 597"),
        (changed("obs", lambda o: o * np.nan), "column obs holds something else than finite"),
    ],
)
def test_transitions_that_do_not_fit(tmp_path, networks, spoil, message):
    columns = transitions()
    spoil(columns)
    np.savez(tmp_path / "buffer.npz", **columns)
    with pytest.raises(UserError, match=message) as caught:
        record_checkpoint(tmp_path / "run", tmp_path / "buffer.npz", **networks)
    assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        StoredTransitions(tmp_path / "none.npz")
    for text in (b"", b"text", b"PK\x03\x04rest"):
        (tmp_path / "bad.npz").write_bytes(text)
        with pytest.raises(UserError, match="no archive of numpy arrays"):
            StoredTransitions(tmp_path / "bad.npz")
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(UserError, match="no archive of numpy arrays"):
        StoredTransitions(tmp_path / "one.npy")
    with pytest.raises(UserError, match="cannot be the newest of 50"):
        StoredTransitions(transitions(), added=50)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"critics": [lambda obs, action: obs]}, r"critic 0 returned shape \(64, 3\)"),
        ({"target_critics": [Actor().body]}, "loss cannot be computed on stored transitions"),
        ({"target_critics": [lambda obs, action: obs]}, r"target critic 0 returned shape \(64, 3"),
        ({"critics": [Critic(nn.BatchNorm1d(8))]}, r"BatchNorm1d\) is in training mode.*eval"),
        ({"target_critics": [Critic(nn.Dropout())]}, r"Dropout\) is in training mode.*eval"),
        ({"policy": lambda obs: obs}, r"cannot be computed|returned shape \(64, 3\)"),
        ({"policy": None}, "targets need the policy"),
        ({"updates": 0}, "at least one"),
        ({"actions": (1, -1)}, "the lower below the upper"),
    ],
)
def test_networks_that_do_not_fit(tmp_path, networks, changes, message):
    with pytest.raises(UserError, match=message) as caught:
        if "actions" in changes:
            changes = {"actions": ActionBox(*changes["actions"])}
        record_checkpoint(tmp_path / "run", transitions(), **(networks | changes))
    assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()


def test_a_named_probe_must_work(tmp_path, networks):
    networks["critics"] = [Critic(nn.BatchNorm1d(8)).eval()]
    networks["probes"] = ["critic_loss", "warmstart"]
    with pytest.raises(UserError, match=r"probe 'warmstart': .*keeps running statistics"):
        record_checkpoint(tmp_path / "run", transitions(), **networks)
    assert not (tmp_path / "run").exists()
    networks["probes"] = ["all"]
    record_checkpoint(tmp_path / "run", transitions(), **networks)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert "keeps running statistics" in manifest["unmeasured"]["warmstart"]
    assert "dormancy" in manifest["probes"]
