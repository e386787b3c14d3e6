"""Hessian eigenvalues by Lanczos against explicit Hessians."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diagnostics.probes.curvature import Curvature, lanczos
from fog.probing import registry
from tests.diagnostics.probes.reference import reference_loss
from tests.diagnostics.probes.stage import SIZE, build, normals


def hessian(stage, critic, noise):
    """The Hessian of the critic's mean loss, entry by entry."""
    tree = stage.agent.networks.critic(critic)
    shapes = {name: tensor.shape for name, tensor in tree.items()}
    flat = torch.cat([tensor.reshape(-1) for tensor in tree.values()])

    def loss(vector):
        parts = vector.split([shape.numel() for shape in shapes.values()])
        params = {n: part.view(s) for (n, s), part in zip(shapes.items(), parts, strict=True)}
        return reference_loss(stage, critic, params, stage.everything(), noise)[0].mean()

    return torch.autograd.functional.hessian(loss, flat, vectorize=True).numpy()


@pytest.mark.parametrize("variant", ["fog", "expanded-sac"])
def test_eigenvalues_of_a_tiny_critic(tmp_path, variant):
    stage = build(tmp_path, Curvature(batch=SIZE, steps=120), variant=variant, width=4)
    before = stage.agent.state_dict()
    stage.probes.window()
    after = stage.agent.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    table = stage.read("curvature").set_index("critic")
    assert list(table.index) == list(stage.view.agent.critics)
    rng = stage.rng("curvature")
    for critic, row in table.iterrows():
        matrix = hessian(stage, critic, normals(rng, SIZE))
        rng.standard_normal(len(matrix))
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-9)
        exact = np.linalg.eigvalsh(matrix)[::-1]
        assert row["parameters"] == len(matrix) and row["steps"] == 120
        np.testing.assert_allclose(row["eigenvalues"], exact[:5], rtol=1e-6)
        assert row["lowest"] == pytest.approx(exact[-1], rel=1e-6) and row["lowest"] < 0
        assert max(row["residuals"]) < 1e-6 * exact[0]


def test_few_steps_stay_within_their_bounds():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((60, 60))
    matrix = torch.from_numpy(matrix + matrix.T)
    exact = np.linalg.eigvalsh(matrix.numpy())
    found = lanczos(matrix.mv, torch.from_numpy(rng.standard_normal(60)), 12)
    assert len(found.values) == 12 and (np.diff(found.values) < 0).all()
    distance = np.abs(found.values[:, None] - exact).min(axis=1)
    assert (distance <= found.residuals + 1e-9).all() and (found.residuals > 1e-9).any()
    whole = lanczos(matrix.mv, torch.from_numpy(rng.standard_normal(60)), 100)
    np.testing.assert_allclose(whole.values, exact[::-1], atol=1e-9)


def test_lanczos_ends_when_nothing_is_left_to_find():
    diagonal = torch.tensor([3.0, 3.0, -1.0, 0.0, 0.0], dtype=torch.float64)
    found = lanczos(lambda v: diagonal * v, torch.ones(5, dtype=torch.float64), 5)
    np.testing.assert_allclose(found.values, [3, 0, -1], atol=1e-12)
    assert (found.residuals == 0).all()


def test_curvature_must_be_named():
    assert "curvature" in registry.available()
    assert "curvature" not in registry.chosen(["all"])
    assert "curvature" in registry.chosen(["all", "curvature"])
    assert "curvature:steps=3" in registry.chosen(["all", "curvature:steps=3"])
    assert registry.chosen(["curvature"]) == ["curvature"]
