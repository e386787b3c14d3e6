"""t-SNE and the numbers that go with it."""

from __future__ import annotations

import numpy as np
import pytest

from diagnostics.metrics.embedding import Settings, embed

QUICK = Settings(iterations=250, clusters=(2, 3, 4), quality_points=200)


def blobs(count, points=180, width=12, distance=12.0):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(count, width)) * distance / np.sqrt(width)
    return centres[np.arange(points) % count] + rng.normal(size=(points, width))


def test_clusters_are_found_and_separated():
    found = embed(blobs(3), QUICK)
    assert found.points.shape == (180, 2)
    assert found.cluster_count == 3
    assert found.silhouette > 0.4
    assert found.trustworthiness > 0.85
    groups = [set(found.clusters[k::3]) for k in range(3)]
    assert all(len(group) == 1 for group in groups)


def test_noise_has_a_low_silhouette_whatever_the_picture_shows():
    noise = np.random.default_rng(0).normal(size=(180, 12))
    assert embed(noise, QUICK).silhouette < 0.2


def test_the_same_seed_gives_the_same_picture():
    first, second = embed(blobs(2), QUICK), embed(blobs(2), QUICK)
    np.testing.assert_array_equal(first.points, second.points)
    assert first.numbers() == second.numbers()
    assert first.numbers()["tsne_seed"] == 0


def test_scale_of_the_features_does_not_matter():
    one, other = embed(blobs(2), QUICK), embed(1000 * blobs(2), QUICK)
    assert one.silhouette == pytest.approx(other.silhouette, abs=1e-6)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.zeros((5, 3)), "at least 10"),
        (np.full((20, 3), np.nan), "not finite"),
        (np.full((20, 3), 0.1), "do not vary"),
        (np.arange(20.0)[:, None], "do not vary"),
    ],
)
def test_bad_features_are_named(features, message):
    with pytest.raises(ValueError, match=message):
        embed(features, QUICK)


def test_mostly_dead_features_do_not_break():
    features = np.zeros((40, 4))
    features[:5, 0] = 1.0
    assert np.isfinite(embed(features, QUICK).points).all()
