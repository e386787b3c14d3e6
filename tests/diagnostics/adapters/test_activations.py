"""Hidden neurons of foreign networks: dead ones of known number, however they are written."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from diagnostics.adapters.modules import ObservedModules, Policy
from fog.errors import UserError
from fog.events import TransitionBatch

OBS, ACT, SIZE, WIDTH = 3, 2, 64, 32
DEAD = (9, 20)
"""Dead neurons of the first and the second layer; the others are alive."""

ZERO = torch.zeros(WIDTH)
WAYS = {
    "F.relu": F.relu,
    "F.relu in place": lambda x: F.relu(x, inplace=True),
    "F.relu positional": lambda x: F.relu(x, True),
    "F.relu by keyword": lambda x: F.relu(input=x),
    "F.relu_": F.relu_,
    "torch.relu": torch.relu,
    "torch.relu_": torch.relu_,
    "x.relu()": lambda x: x.relu(),
    "x.relu_()": lambda x: x.relu_(),
    "torch.clamp": lambda x: torch.clamp(x, min=0),
    "x.clamp(0)": lambda x: x.clamp(0.0),
    "x.clamp_min_(0)": lambda x: x.clamp_min_(0),
    "torch.maximum": lambda x: torch.maximum(x, ZERO),
    "F.threshold": lambda x: F.threshold(x, 0.0, 0.0),
    "F.relu6": F.relu6,
    "F.hardtanh": lambda x: F.hardtanh(x, 0.0, 6.0),
    "nn.ReLU": nn.ReLU(),
    "nn.ReLU in place": nn.ReLU(inplace=True),
    "nn.ReLU6": nn.ReLU6(),
}
SMOOTH = {
    "silu": F.silu,
    "gelu": F.gelu,
    "mish": F.mish,
    "softplus": F.softplus,
    "sigmoid": torch.sigmoid,
    "logsigmoid": F.logsigmoid,
    "tanh": torch.tanh,
    "F.tanh": F.tanh,
    "x.tanh_()": lambda x: x.tanh_(),
    "elu": F.elu,
    "selu": F.selu,
    "celu": F.celu,
    "leaky_relu": F.leaky_relu,
    "softsign": F.softsign,
    "hardswish": F.hardswish,
    "nn.PReLU": nn.PReLU(),
}


class Critic(nn.Module):
    """Two hidden layers, as CleanRL writes them."""

    def __init__(self, activation) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.fc1, self.fc2 = nn.Linear(OBS + ACT, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc3 = nn.Linear(WIDTH, 1)
        self.f = activation
        for layer, dead in zip((self.fc1, self.fc2), DEAD, strict=True):
            with torch.no_grad():
                layer.bias[:] = 3.0
                layer.bias[:dead] = -100.0

    def forward(self, x):
        return self.fc3(self.f(self.fc2(self.f(self.fc1(x)))))


class Statements(Critic):
    """Calls the activation and goes on with what was given to it."""

    def forward(self, x):
        x = self.fc1(x)
        self.f(x)
        x = self.fc2(x)
        self.f(x)
        return self.fc3(x)


def batch() -> TransitionBatch:
    torch.manual_seed(1)
    obs, action = torch.randn(SIZE, OBS), torch.randn(SIZE, ACT)
    return TransitionBatch(obs, action, torch.randn(SIZE), torch.ones(SIZE), obs)


def observed(*critics: nn.Module) -> ObservedModules:
    return ObservedModules(critics, lambda batch, _: batch.reward, ACT)


def hidden(*critics: nn.Module):
    return observed(*critics).hidden("online", batch(), torch.zeros(SIZE, ACT))


def dead(found) -> list[int]:
    """Neurons of each layer whose output and gradient are exactly 0."""
    return [
        int(((layer.output[0] == 0).all(dim=0) & (layer.gradient[0] == 0).all(dim=0)).sum())
        for layer in found.values()
    ]


@pytest.mark.parametrize("way", WAYS)
def test_dead_units_are_counted_however_the_activation_is_written(way):
    assert dead(hidden(Critic(WAYS[way]))) == list(DEAD)


@pytest.mark.parametrize("way", ["F.relu_", "x.relu_()", "x.clamp_min_(0)", "nn.ReLU in place"])
def test_an_activation_in_place_changes_what_it_is_given(way):
    critic = Statements(WAYS[way])
    assert dead(hidden(critic)) == list(DEAD)


@pytest.mark.parametrize("way", [*WAYS, *SMOOTH])
def test_outputs_and_gradients_are_those_of_the_activation(way):
    function = {**WAYS, **SMOOTH}[way]
    critic, data = Critic(function).double(), batch()
    data = TransitionBatch(*(part.double() for part in data))
    ZERO.data = ZERO.double()
    with torch.no_grad():
        critic.fc1.bias[:] = 0.0
    found = observed(critic).hidden("online", data, torch.zeros(SIZE, ACT))
    first = critic.fc1(torch.cat([data.obs, data.action], -1))
    h = function(first.clone())
    second = critic.fc2(h)
    top = function(second.clone())
    loss = (critic.fc3(top)[:, 0] - data.reward).square().sum()
    gradients = torch.autograd.grad(loss, [first, second])
    for layer, output, gradient in zip(found.values(), (h, top), gradients, strict=True):
        torch.testing.assert_close(layer.output[0], output.detach())
        torch.testing.assert_close(layer.gradient[0], gradient)


def test_layers_are_named_after_modules_or_after_the_layer_and_the_function():
    assert list(hidden(Critic(F.relu))) == ["fc1.relu", "fc2.relu"]
    assert list(hidden(Critic(nn.ReLU()))) == ["f", "f#2"]
    modules = nn.Sequential(nn.Linear(OBS + ACT, 4), nn.ReLU(), nn.Linear(4, 1))
    assert list(hidden(modules)) == ["1"]


def test_twins_have_their_own_rows_and_no_hook_is_left():
    twins = [Critic(F.relu), Critic(F.relu)]
    with torch.no_grad():
        twins[1].fc1.bias[:] = 3.0
    found = hidden(*twins)
    alive = (found["fc1.relu"].output != 0).any(dim=1).sum(dim=-1)
    assert alive.tolist() == [WIDTH - DEAD[0], WIDTH]
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in twins[0].modules())
    assert all(p.grad is None for p in twins[0].parameters())


class Actor(nn.Module):
    """CleanRL's actor of SAC, with a squashed head before the other head."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.mean = nn.Linear(OBS, WIDTH), nn.Linear(WIDTH, ACT)
        self.log_std = nn.Linear(WIDTH, ACT)

    def get_action(self, x):
        x = F.relu(self.fc1(torch.clamp(x, min=0)))
        mean = torch.tanh(self.mean(x))
        return mean, torch.tanh(self.log_std(x))


def test_inputs_heads_and_other_networks_are_no_hidden_neurons_of_a_policy():
    """Nor is `forward` needed: this actor has none."""
    actor, critic = Actor(), Critic(F.relu)

    def loss(batch, noise):
        mean, log_std = actor.get_action(batch.obs)
        action = torch.tanh(mean + noise * log_std.exp())
        return -critic(torch.cat([batch.obs, action], -1))[:, 0]

    policy = Policy(actor, lambda obs: actor.get_action(obs)[0], loss)
    agent = ObservedModules([critic], lambda batch, _: batch.reward, ACT, policy=policy)
    found = agent.hidden("actor", batch(), torch.zeros(SIZE, ACT))
    assert list(found) == ["fc1.relu"]
    assert list(agent.hidden("online", batch(), torch.zeros(SIZE, ACT))) == ["fc1.relu", "fc2.relu"]


class Residual(nn.Module):
    """Pre-norm residual blocks, and a matrix product written out."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Linear(OBS + ACT, 8), nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.head = nn.Parameter(torch.randn(1, 8))

    def forward(self, x):
        x = self.stem(x)
        x = x + self.down(F.silu(self.up(self.norm(x))))
        return F.relu(self.norm(x)) @ self.head.t()


def test_residual_blocks_and_products_written_out():
    found = hidden(Residual())
    assert list(found) == ["up.silu", "norm.relu"]
    assert [layer.output.shape[-1] for layer in found.values()] == [16, 8]


class Unseen(nn.Module):
    """An activation that no name of torch tells."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(OBS + ACT, 8), nn.Linear(8, 1)

    def forward(self, x):
        h = self.first(x)
        return torch.tanh(self.head(h * (h > 0)))


@pytest.mark.parametrize("wrap", [lambda critic: critic, torch.jit.script])
def test_activations_that_cannot_be_seen_are_refused_in_one_line(wrap):
    critic = wrap(Unseen())
    with pytest.raises(UserError, match=r"no activation was seen .*leave out the probe") as refusal:
        hidden(critic)
    assert "\n" not in str(refusal.value)
    # Everything else about it can be probed.
    features = observed(Unseen()).features("online", batch().obs, batch().action)
    assert features.shape == (1, SIZE, 8)


def test_critics_that_share_a_layer_are_refused():
    twins = [Critic(F.relu), Critic(F.relu)]
    twins[1].fc1 = twins[0].fc1
    with pytest.raises(UserError, match="of equal shape that share no layer"):
        hidden(*twins)
