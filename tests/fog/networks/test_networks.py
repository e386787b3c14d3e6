"""Networks against plain per-member arithmetic in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fog.networks import (
    LogStd,
    actor_forward,
    critic_forward,
    depth_of,
    gaussian_log_density,
    init_actor,
    init_critic,
    members,
    sample_action,
)
from fog.records.sizes import CriticShape, actor_shapes
from tests.fog.networks.tapped import actor_layers, critic_layers

CLIP = LogStd("clip", -20.0, 2.0)


def rng(seed=0):
    return np.random.default_rng(seed)


def randomised(params, seed=1):
    """Every tensor away from its initial value, so that biases and LayerNorm matter."""
    noise = torch.Generator().manual_seed(seed)
    return {k: v + 0.1 * torch.randn(v.shape, generator=noise) for k, v in params.items()}


def numpy_act(x, name):
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0))) if name == "elu" else np.maximum(x, 0)


def numpy_critic(params, x, name, depth, eps=1e-6):
    """One member at a time, with the block written out as the paper has it."""
    p = {k: v.double().numpy() for k, v in params.items()}
    outs = []
    for e in range(p["stem.weight"].shape[0]):

        def dense_norm(h, key, e=e):
            h = h @ p[f"{key}.weight"][e] + p[f"{key}.bias"][e]
            h = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + eps)
            return h * p[f"{key}.scale"][e] + p[f"{key}.offset"][e]

        h = numpy_act(dense_norm(x, "stem"), name)
        for i in range(depth):
            inner = numpy_act(dense_norm(h, f"block{i}.inner"), name)
            h = h + dense_norm(inner, f"block{i}.outer")
        outs.append((h @ p["head.weight"][e] + p["head.bias"][e])[:, 0])
    return np.stack(outs)


@pytest.mark.parametrize("activation", ["elu", "relu"])
@pytest.mark.parametrize(("ensemble", "depth"), [(1, 1), (2, 1), (4, 3)])
def test_critic_is_stem_blocks_head(activation, ensemble, depth):
    params = randomised(init_critic(rng(), CriticShape(16).critic(ensemble, 7, depth)))
    x = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    got = critic_forward(params, x, activation)
    want = numpy_critic(params, x.double().numpy(), activation, depth)
    assert got.shape == (ensemble, 5)
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-5, atol=2e-5)


def test_plain_critic_is_an_mlp_of_two_hidden_layers():
    params = randomised(init_critic(rng(), CriticShape(16, 2, layer_norm=False).critic(2, 7, 0)))
    assert not any(name.endswith((".scale", ".offset")) for name in params)
    x = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    got = critic_forward(params, x, "relu")
    for member in range(2):
        p = {name: tensor[member].double().numpy() for name, tensor in params.items()}
        h = x.double().numpy()
        for key in ("stem", "hidden"):
            h = np.maximum(h @ p[f"{key}.weight"] + p[f"{key}.bias"], 0.0)
        want = (h @ p["head.weight"] + p["head.bias"])[:, 0]
        np.testing.assert_allclose(got[member].numpy(), want, rtol=2e-5, atol=2e-5)


def test_critic_takes_one_input_per_member():
    params = randomised(init_critic(rng(), CriticShape(8).critic(2, 4, 1)))
    a, b = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    both = critic_forward(params, torch.stack([a, b]), "elu")
    torch.testing.assert_close(both[0], critic_forward(params, a, "elu")[0])
    torch.testing.assert_close(both[1], critic_forward(params, b, "elu")[1])


def test_members_are_views_of_the_stack():
    params = randomised(init_critic(rng(), CriticShape(8).critic(4, 4, 1)))
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    offline = members(params, 2, 4)
    torch.testing.assert_close(
        critic_forward(offline, x, "elu"), critic_forward(params, x, "elu")[2:]
    )
    assert offline["stem.weight"].data_ptr() == params["stem.weight"][2].data_ptr()


@pytest.mark.parametrize(("fan_in", "fan_out"), [(23, 64), (64, 64), (64, 1), (300, 64)])
def test_initial_weights_are_orthogonal_with_gain_sqrt_2(fan_in, fan_out):
    shapes = {"x.weight": (2, fan_in, fan_out)}
    weight = init_critic(rng(), shapes)["x.weight"].double()
    small = min(fan_in, fan_out)
    gram = weight.mT @ weight if fan_in >= fan_out else weight @ weight.mT
    torch.testing.assert_close(
        gram, 2 * torch.eye(small, dtype=torch.float64).expand(2, -1, -1), atol=1e-5, rtol=0
    )
    assert not torch.equal(weight[0], weight[1])


def test_initial_head_biases_and_norms():
    params = init_critic(rng(), CriticShape(32).critic(2, 5, 2))
    assert params["head.weight"].norm(dim=1).flatten().tolist() == pytest.approx([2**0.5] * 2)
    for name, tensor in params.items():
        if name.endswith((".bias", ".offset")):
            assert not tensor.any()
        if name.endswith(".scale"):
            assert (tensor == 1).all()


def test_depth_and_dense_layers_are_properties_of_the_tree():
    for depth in (1, 2, 4):
        assert depth_of(init_critic(rng(), CriticShape(4).critic(1, 3, depth))) == depth
    assert [CriticShape(4).dense_layers(depth) for depth in (2, 3, 4)] == [6, 8, 10]
    assert [CriticShape(4, 2).dense_layers(depth) for depth in (0, 1, 2)] == [3, 5, 7]


def test_growth_appends_on_the_residual_path_and_keeps_the_rest():
    params = randomised(init_critic(rng(), CriticShape(8).critic(2, 5, 1)))
    before = {k: v.clone() for k, v in params.items()}
    block = init_critic(rng(3), CriticShape(8).block(1, 2))
    grown = params | block
    assert depth_of(params) == 1 and depth_of(grown) == 2
    assert all(torch.equal(grown[k], before[k]) for k in before)
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(
        critic_forward(grown, x, "elu").numpy(),
        numpy_critic(grown, x.double().numpy(), "elu", 2),
        rtol=2e-5,
        atol=2e-5,
    )
    silent = block | {"block1.outer.scale": torch.zeros(2, 1, 8)}
    torch.testing.assert_close(
        critic_forward(params | silent, x, "elu"), critic_forward(params, x, "elu")
    )
    assert not torch.allclose(critic_forward(grown, x, "elu"), critic_forward(params, x, "elu"))


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("activation", ["elu", "relu"])
def test_actor_is_two_hidden_layers_and_a_head(normalised, activation):
    params = randomised(init_actor(rng(), actor_shapes(7, 3, 16, normalised)))
    obs = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    p = {k: v.double().numpy() for k, v in params.items()}
    h = obs.double().numpy()
    for key in ("hidden0", "hidden1"):
        h = h @ p[f"{key}.weight"] + p[f"{key}.bias"]
        if normalised:
            h = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + 1e-6)
            h = h * p[f"{key}.scale"] + p[f"{key}.offset"]
        h = numpy_act(h, activation)
    head = h @ p["head.weight"] + p["head.bias"]
    mean, log_std = actor_forward(params, obs, activation, CLIP)
    np.testing.assert_allclose(mean.numpy(), head[:, :3], rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(log_std.numpy(), head[:, 3:].clip(-20, 2), rtol=2e-5, atol=2e-5)
    assert sum(name.endswith(".weight") for name in params) == 3


def test_actor_head_gains_are_sqrt_2_for_the_mean_and_1_for_log_std():
    head = init_actor(rng(), actor_shapes(7, 3, 16, False))["head.weight"]
    torch.testing.assert_close(head[:, :3].T @ head[:, :3], 2 * torch.eye(3))
    torch.testing.assert_close(head[:, 3:].T @ head[:, 3:], torch.eye(3))


def test_log_std_is_clipped_hard_and_has_no_gradient_outside():
    params = init_actor(rng(), actor_shapes(2, 2, 4, False))
    params["head.weight"] = torch.zeros_like(params["head.weight"])
    params["head.bias"] = torch.tensor([0.0, 0.0, 5.0, -30.0], requires_grad=True)
    _, log_std = actor_forward(params, torch.ones(1, 2), "elu", CLIP)
    assert log_std.tolist() == [[2.0, -20.0]]
    log_std.sum().backward()
    assert params["head.bias"].grad.tolist() == [0.0, 0.0, 0.0, 0.0]


def test_smooth_log_std_stays_inside_and_keeps_a_gradient():
    smooth = LogStd("smooth", -10.0, 2.0)
    free = torch.tensor([-50.0, -1.0, 0.0, 1.0, 50.0], dtype=torch.float64, requires_grad=True)
    log_std, slope = smooth.with_slope(free)
    # jaxrl's formula.
    want = -10.0 + 0.5 * 12.0 * (1.0 + np.tanh([-50.0, -1.0, 0.0, 1.0, 50.0]))
    np.testing.assert_allclose(log_std.detach().numpy(), want, rtol=1e-12)
    assert log_std[2] == -4.0
    (gradient,) = torch.autograd.grad(log_std.sum(), free)
    torch.testing.assert_close(slope, gradient, rtol=1e-12, atol=1e-12)
    assert (gradient[1:4] > 0).all()


def test_log_prob_and_its_gradient_equal_torch_distributions():
    g = torch.Generator().manual_seed(0)
    mean = torch.randn(50, 3, generator=g, dtype=torch.float64).requires_grad_()
    log_std = (0.3 * torch.randn(50, 3, generator=g, dtype=torch.float64)).requires_grad_()
    noise = torch.randn(50, 3, generator=g, dtype=torch.float64)
    sample = sample_action(mean, log_std, noise)
    base = torch.distributions.Normal(mean, log_std.exp())
    squashed = torch.distributions.TransformedDistribution(
        base, [torch.distributions.TanhTransform(cache_size=1)]
    )
    action = squashed.transforms[0](mean + log_std.exp() * noise)
    want = squashed.log_prob(action).sum(-1)
    torch.testing.assert_close(sample.action, action)
    torch.testing.assert_close(sample.log_prob, want)
    got = torch.autograd.grad(sample.log_prob.sum(), [mean, log_std], retain_graph=True)
    expected = torch.autograd.grad(want.sum(), [mean, log_std])
    torch.testing.assert_close(got, expected)


def test_log_prob_stays_exact_where_tanh_saturates_in_float32():
    mean, log_std = torch.tensor([[15.0]]), torch.tensor([[0.0]])
    got = sample_action(mean, log_std, torch.zeros(1, 1)).log_prob
    # log(1 - tanh(15)^2) = log 4 - 30 up to e^-30, and the naive form gives log(0).
    assert got.item() == pytest.approx(-0.5 * math.log(2 * math.pi) - (math.log(4) - 30), rel=1e-6)


def test_gaussian_log_density_per_dimension():
    mean, log_std, at = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0))
    want = torch.distributions.Normal(mean, log_std.exp()).log_prob(at)
    torch.testing.assert_close(gaussian_log_density(mean, log_std, at), want)


def test_critic_layers_name_every_hidden_layer_and_the_features():
    params = randomised(init_critic(rng(), CriticShape(8).critic(2, 5, 2)))
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    values, layers = critic_layers(params, x, "relu")
    assert list(layers) == [
        "stem",
        "block0.inner",
        "block0.outer",
        "block1.inner",
        "block1.outer",
        "features",
    ]
    assert all(h.shape == (2, 6, 8) for h in layers.values())
    assert (layers["stem"] >= 0).all() and (layers["block1.inner"] >= 0).all()
    residual = layers["stem"] + layers["block0.outer"] + layers["block1.outer"]
    torch.testing.assert_close(layers["features"], residual)
    head = torch.baddbmm(params["head.bias"], layers["features"], params["head.weight"])
    torch.testing.assert_close(values, head[..., 0])
    torch.testing.assert_close(values, critic_forward(params, x, "relu"))


def test_zero_perturbation_gives_the_gradient_of_a_layer():
    params = {
        k: v.double()
        for k, v in randomised(init_critic(rng(), CriticShape(4).critic(1, 3, 1))).items()
    }
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def loss(shift):
        return critic_layers(params, x, "elu", {"block0.inner": shift})[0].square().sum()

    zero = torch.zeros(1, 2, 4, dtype=torch.float64, requires_grad=True)
    grad = torch.autograd.grad(loss(zero), zero)[0]
    bump = torch.zeros(1, 2, 4, dtype=torch.float64)
    bump[0, 1, 2] = 1e-6
    numeric = (loss(bump) - loss(-bump)) / 2e-6
    assert grad[0, 1, 2].item() == pytest.approx(numeric.item(), rel=1e-5)
    assert grad.abs().sum() > 0


def test_actor_layers_are_the_activations():
    params = randomised(init_actor(rng(), actor_shapes(3, 2, 8, True)))
    obs = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    (mean, log_std), layers = actor_layers(params, obs, "relu", CLIP)
    assert list(layers) == ["hidden0", "hidden1"]
    head = layers["hidden1"] @ params["head.weight"] + params["head.bias"]
    torch.testing.assert_close(torch.cat([mean, log_std], -1), head)
