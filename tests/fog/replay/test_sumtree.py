"""The trees against plain arithmetic on their leaves."""

from __future__ import annotations

import numpy as np
import pytest

from fog.replay import MaxTree, SumTree

SIZES = [1, 5, 4096, 4097, 70_000, 1_100_000]


def levels(tree: SumTree) -> list[np.ndarray]:
    return [level.copy() for level in tree._levels]


@pytest.mark.parametrize("size", SIZES)
def test_sums_stay_exact_whatever_the_way_of_writing(size):
    rng = np.random.default_rng(0)
    tree = SumTree(size)
    plain = np.zeros(size)
    for _ in range(50):
        indices = rng.integers(0, size, 64)
        weights = rng.exponential(size=64) ** 3
        tree.set(indices, weights)
        plain[indices] = weights
        one, weight = int(rng.integers(size)), float(rng.exponential())
        tree.set_one(one, weight)
        plain[one] = weight
    assert np.array_equal(tree.leaves[:size], plain)
    assert tree.total == pytest.approx(plain.sum(), rel=1e-12)
    grown = levels(tree)
    tree.rebuild()
    for a, b in zip(grown, levels(tree), strict=True):
        assert np.array_equal(a, b), "a rebuilt tree must be the same bit for bit"


@pytest.mark.parametrize("size", SIZES)
def test_draw_inverts_the_cumulative_sum(size):
    rng = np.random.default_rng(1)
    tree = SumTree(size)
    weights = rng.exponential(size=size) * (rng.random(size) < 0.5)
    weights[rng.integers(size)] = 2.0
    tree.leaves[:size] = weights
    tree.rebuild()
    chosen = rng.choice(np.flatnonzero(weights), 2000)
    ends = np.cumsum(weights)
    uniforms = (ends[chosen] - weights[chosen] * rng.uniform(0.05, 0.95, 2000)) / ends[-1]
    # The cumulative sum itself carries rounding of about 1e-16 of the total.
    clear = weights[chosen] / ends[-1] > 1e-11
    assert np.array_equal(tree.draw(uniforms)[clear], chosen[clear])


@pytest.mark.parametrize("size", SIZES)
def test_never_a_leaf_without_weight(size):
    """Extreme weights and uniforms at the very ends: rounding must not leak into empty leaves."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        tree = SumTree(size)
        filled = rng.integers(0, size, 7)
        tree.set(filled, 10.0 ** rng.uniform(-12, 12, 7))
        uniforms = np.concatenate([rng.random(200), [0.0, 1.0 - 2.0**-53]])
        drawn = tree.draw(uniforms)
        assert (tree.leaves[drawn] > 0).all()
        assert np.isin(drawn, filled).all()


def test_of_a_repeated_index_the_last_weight_stays():
    tree = SumTree(100_000)
    tree.set(np.array([7, 7, 7]), np.array([1.0, 2.0, 3.0]))
    assert tree.leaves[7] == 3.0
    assert tree.total == 3.0


@pytest.mark.parametrize("size", SIZES)
def test_the_largest_is_exact_also_after_it_was_lowered(size):
    rng = np.random.default_rng(3)
    tree = MaxTree(size)
    plain = np.zeros(size)
    assert tree.largest == 0.0
    for _ in range(50):
        indices = rng.integers(0, size, 64)
        values = rng.exponential(size=64) ** 3
        tree.set(indices, values)
        plain[indices] = values
        assert tree.largest == plain.max()
        one = int(plain.argmax())
        tree.set_one(one, 0.0)
        plain[one] = 0.0
        assert tree.largest == plain.max()
    tree.leaves[:] = 0.0
    tree.rebuild()
    assert tree.largest == 0.0
