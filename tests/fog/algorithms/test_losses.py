"""Every loss against arithmetic in float64 numpy from the same network outputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fog.algorithms import losses


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def f64(tensor):
    return tensor.double().numpy()


def close(got, want):
    np.testing.assert_allclose(f64(got), want, rtol=1e-5, atol=1e-6)


def test_pessimism_1_is_the_minimum_and_0_the_mean():
    q = draw(2, 40)
    assert torch.equal(losses.combine(q, 1.0), q.min(dim=0).values)
    torch.testing.assert_close(losses.combine(q, 0.0), q.mean(dim=0))


@pytest.mark.parametrize("p", [0.0, 0.3, 0.9999, 1.0])
def test_pessimism_formula(p):
    q = draw(2, 40)
    q1, q2 = f64(q)
    close(losses.combine(q, p), (q1 + q2) / 2 - p * np.abs(q1 - q2) / 2)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_soft_target(p):
    reward, log_prob, q = draw(30), draw(30, seed=1), draw(2, 30, seed=2)
    bootstrap = (draw(30, seed=3) > 0).float()
    alpha = torch.tensor(0.7)
    got = losses.soft_target(reward, bootstrap, losses.combine(q, p), log_prob, alpha, 0.99)
    best = f64(q).min(0) if p else f64(q).mean(0)
    close(got, f64(reward) + 0.99 * f64(bootstrap) * (best - 0.7 * f64(log_prob)))
    assert torch.equal(got[bootstrap == 0], reward[bootstrap == 0])


def test_offline_target_has_no_entropy():
    reward, value, bootstrap = draw(30), draw(30, seed=1), (draw(30, seed=2) > 0).float()
    got = losses.offline_target(reward, bootstrap, value, 0.9)
    close(got, f64(reward) + 0.9 * f64(bootstrap) * f64(value))


def test_critic_loss_sums_twins_and_keeps_transitions_apart():
    q, y = draw(2, 30), draw(30, seed=1)
    got = losses.critic_loss(q, y)
    assert got.shape == (30,)
    close(got, (f64(q[0]) - f64(y)) ** 2 + (f64(q[1]) - f64(y)) ** 2)


def test_priority_error_is_the_larger_twin():
    q, y = torch.tensor([[1.0, -3.0], [4.0, 0.0]]), torch.tensor([2.0, -1.0])
    assert losses.priority_error(q, y).tolist() == [2.0, 2.0]


def test_expectile_weights_by_sign():
    u = torch.tensor([2.0, -2.0, 0.0, 0.5])
    close(losses.expectile_loss(u, 0.9), [0.9 * 4, 0.1 * 4, 0.0, 0.9 * 0.25])
    v = draw(50)
    want = np.abs(0.9 - (f64(v) < 0)) * f64(v) ** 2
    close(losses.expectile_loss(v, 0.9), want)


def test_expectile_minimiser_is_the_expectile():
    """An expectile e solves q E[(x-e)+] = (1-q) E[(e-x)+]: checked at the numeric minimiser."""
    x = draw(2000).double()
    grid = torch.linspace(-1, 3, 4001, dtype=torch.float64)
    loss = losses.expectile_loss(x[None] - grid[:, None], 0.9).mean(dim=1)
    best = grid[loss.argmin()]
    up, down = (x - best).clamp(min=0).mean(), (best - x).clamp(min=0).mean()
    assert (0.9 * up).item() == pytest.approx((0.1 * down).item(), rel=2e-2)


def test_cloning_density_is_clipped_per_dimension_then_averaged():
    mean, log_std = 2 * draw(40, 3), 1.5 * draw(40, 3, seed=1) - 2
    action = torch.tanh(draw(40, 3, seed=2))
    mean[:5], log_std[:5] = action[:5], -4.0
    got = losses.cloning_density(mean, log_std, action, (-20.0, 2.0))
    m, s, a = f64(mean), f64(log_std), f64(action)
    density = -0.5 * ((a - m) / np.exp(s)) ** 2 - s - 0.5 * np.log(2 * np.pi)
    clipped = np.clip(density, -20, 2)
    assert (density < -20).any() and (density > 2).any(), "the clip must be exercised"
    close(got, clipped.mean(axis=1))
    assert not np.allclose(f64(got), density.mean(axis=1))
    assert not np.allclose(f64(got), clipped.sum(axis=1))


def test_cloning_density_has_no_gradient_where_clipped():
    mean = torch.tensor([[0.0, 0.5]], requires_grad=True)
    log_std = torch.tensor([[-5.0, 0.0]])
    action = torch.tensor([[0.0, 0.9]])
    losses.cloning_density(mean, log_std, action, (-20.0, 2.0)).sum().backward()
    assert mean.grad[0, 0] == 0
    assert mean.grad[0, 1].item() == pytest.approx((0.9 - 0.5) / 2)


def test_cloning_gate_is_one_strict_scalar():
    policy = torch.tensor([1.0, 3.0])
    assert not losses.cloning_gate(policy, torch.tensor([2.0, 2.0])), "equal means: closed"
    assert losses.cloning_gate(policy, torch.tensor([2.0, 2.1]))
    assert not losses.cloning_gate(policy, torch.tensor([9.0, -9.0]))
    assert losses.cloning_gate(policy, torch.tensor([9.0, -4.0])).shape == ()


def test_actor_and_temperature_losses():
    log_prob, q, alpha = draw(30), draw(30, seed=1), torch.tensor(0.3)
    close(losses.actor_loss(log_prob, q, alpha), 0.3 * f64(log_prob) - f64(q))
    log_alpha = torch.tensor(-0.4, requires_grad=True)
    loss = losses.temperature_loss(log_alpha, log_prob, -3.0)
    close(loss.detach(), 0.4 * (f64(log_prob) - 3.0))
    (grad,) = torch.autograd.grad(loss.mean(), log_alpha)
    assert grad.item() == pytest.approx(-(f64(log_prob).mean() - 3.0), rel=1e-5)


def test_temperature_rises_when_entropy_is_below_target():
    log_alpha = torch.tensor(0.0, requires_grad=True)
    low_entropy = torch.full((4,), 5.0)
    loss = losses.temperature_loss(log_alpha, low_entropy, -3.0).mean()
    (grad,) = torch.autograd.grad(loss, log_alpha)
    assert grad < 0, "descending must raise log alpha"


def test_temperature_loss_gives_the_policy_no_gradient():
    log_prob = draw(4).requires_grad_()
    log_alpha = torch.tensor(0.0, requires_grad=True)
    losses.temperature_loss(log_alpha, log_prob, -1.0).mean().backward()
    assert log_prob.grad is None
