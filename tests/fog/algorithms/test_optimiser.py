"""AdamW and Polyak against torch.optim and plain arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fog.algorithms.optimiser import adamw_, init_optimiser, polyak_

CPU = torch.device("cpu")


def tree(seed):
    g = torch.Generator().manual_seed(seed)
    return {
        "a": torch.randn(3, 4, generator=g),
        "b": torch.randn(2, 5, 7, generator=g),
        "c": torch.randn((), generator=g),
    }


def as_if_compiling(monkeypatch):
    """Run the arithmetic that the compiler traces, without compiling it."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 1e-4, 0.1])
def test_fifty_steps_equal_torch_optim(monkeypatch, traced, weight_decay):
    params = tree(0)
    leaves = {k: v.clone().requires_grad_() for k, v in params.items()}
    reference = (
        torch.optim.AdamW(leaves.values(), lr=3e-3, weight_decay=weight_decay, foreach=False)
        if weight_decay
        else torch.optim.Adam(leaves.values(), lr=3e-3, foreach=False)
    )
    state = init_optimiser(params, 3e-3, CPU)
    if traced:
        as_if_compiling(monkeypatch)
    for step in range(50):
        grads = tree(100 + step)
        for name, leaf in leaves.items():
            leaf.grad = grads[name].clone()
        reference.step()
        adamw_(params, grads, state, weight_decay)
    assert state.step.item() == 50
    for name, leaf in leaves.items():
        torch.testing.assert_close(params[name], leaf.detach(), rtol=2e-6, atol=2e-7)


def test_first_step_by_hand():
    params = {"w": torch.tensor([2.0])}
    state = init_optimiser(params, 0.1, CPU)
    adamw_(params, {"w": torch.tensor([0.5])}, state, weight_decay=0.01)
    # After one step both corrected moments are the gradient, so the step is lr * sign.
    assert params["w"].item() == pytest.approx(2.0 * (1 - 0.1 * 0.01) - 0.1, rel=1e-6)
    assert state.mean["w"].item() == pytest.approx(0.05)
    assert state.square["w"].item() == pytest.approx(0.00025)


def test_learning_rate_is_read_from_the_state():
    params = {"w": torch.tensor([1.0])}
    state = init_optimiser(params, 0.1, CPU)
    state.lr.fill_(0.0)
    adamw_(params, {"w": torch.tensor([1.0])}, state)
    assert params["w"].item() == 1.0


def test_an_empty_tree_has_an_optimiser():
    state = init_optimiser({}, 0.1, CPU)
    assert state.mean == {} and state.step.item() == 0


@pytest.mark.parametrize("traced", [False, True])
def test_polyak(monkeypatch, traced):
    target, online = tree(0), tree(1)
    before = {k: v.double().numpy().copy() for k, v in target.items()}
    if traced:
        as_if_compiling(monkeypatch)
    polyak_(target, online, 0.005)
    for name, tensor in target.items():
        want = 0.995 * before[name] + 0.005 * online[name].double().numpy()
        np.testing.assert_allclose(tensor.numpy(), want, rtol=1e-6, atol=1e-7)
