"""Ranks of features against singular value decompositions."""

from __future__ import annotations

import numpy as np
import pytest

from diagnostics.probes.srank import (
    Srank,
    effective_rank,
    feature_rank,
    pca_rank,
    singular_values,
    srank,
)
from tests.diagnostics.probes.stage import build


def test_srank_of_known_matrices():
    rng = np.random.default_rng(0)
    left, right = np.linalg.qr(rng.standard_normal((60, 6)))[0], np.eye(6)
    for sigma, rank in (([1] * 6, 6), ([1, 1, 1, 0, 0, 0], 3), ([98, 1, 1, 0, 0, 0], 2)):
        matrix = left * np.array(sigma) @ right
        assert srank(singular_values(matrix)) == srank(singular_values(matrix.T)) == rank
    assert srank(singular_values(np.zeros((5, 3)))) == 0


def test_other_ranks_of_known_singular_values():
    even, one, none = np.full(6, 2.0), np.array([3.0, 0, 0, 0]), np.zeros(3)
    assert effective_rank(even) == pytest.approx(6) and effective_rank(one) == pytest.approx(1)
    assert pca_rank(even) == 6 and pca_rank(one) == 1
    # 3 of 4 hold 97.8 % of the sum and 99.9 % of the sum of squares.
    assert srank(np.array([4.0, 4, 4, 0.27])) == 4 and pca_rank(np.array([4.0, 4, 4, 0.27])) == 3
    assert feature_rank(np.array([1.0, 0.11, 0.09]), 100) == 2
    assert effective_rank(none) == pca_rank(none) == feature_rank(none, 5) == 0


def test_srank_table_equals_a_singular_value_decomposition(tmp_path):
    stage = build(tmp_path, Srank(per_window=4))
    table = stage.read("srank").query("env_step == 50")
    assert set(table["critic"]) == {"online", "offline"} and len(table) == 4
    batch = stage.everything()
    for _, row in table.iterrows():
        features = stage.agent.networks.features(batch.obs, batch.action, row["critic"])
        sigma = np.linalg.svd(features[row["member"]].double().numpy(), compute_uv=False)
        share = np.cumsum(sigma) / sigma.sum()
        assert row["srank"] == np.argmax(share >= 0.99) + 1
        np.testing.assert_allclose(row["singular_values"], sigma, rtol=1e-6, atol=1e-6)
        entropy = -np.sum(sigma / sigma.sum() * np.log(sigma / sigma.sum()))
        assert row["effective_rank"] == pytest.approx(np.exp(entropy), rel=1e-6)
        squares = np.cumsum(sigma**2) / np.sum(sigma**2)
        assert row["pca_rank"] == np.argmax(squares >= 0.99) + 1
        assert row["feature_rank"] == np.linalg.matrix_rank(
            features[row["member"]] / np.sqrt(50), 0.01
        )
        assert row["width"] == stage.agent.spec.width
