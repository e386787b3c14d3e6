"""t-SNE of critic features with recorded parameters, and numbers that a plot cannot show.

t-SNE shows clusters even in noise, so plots come with two numbers. Trustworthiness measures whether
neighbours in the plot are neighbours in feature space. The silhouette of k-means clusters, found
and measured in feature space and not in the plot, measures whether there are clusters.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, trustworthiness
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Settings:
    """Everything an embedding depends on besides the features."""

    perplexity: float = 30.0
    """Effective number of neighbours; lowered for small samples."""
    iterations: int = 1000
    components: int = 50
    """Principal components that t-SNE sees; 50 as in the original implementation."""
    clusters: tuple[int, ...] = (2, 3, 4, 5, 6, 8, 10)
    """Numbers of k-means clusters tried; the one with the best silhouette is reported."""
    neighbours: int = 15
    """Neighbourhood size of trustworthiness."""
    quality_points: int = 2000
    """Points for the two quality numbers, which cost the square of it."""
    seed: int = 0


@dataclass(frozen=True)
class Embedding:
    """Points in the plane, their cluster, and how far to trust them."""

    points: NDArray[np.float64]
    clusters: NDArray[np.int64]
    cluster_count: int
    silhouette: float
    """Of the clusters in feature space: 1 is well separated, 0 is no clusters."""
    silhouette_in_plane: float
    """Of the same clusters in the plot: what the eye sees."""
    trustworthiness: float
    """1: all neighbours in the plot are neighbours in feature space."""
    kl_divergence: float
    variance_kept: float
    """Share of the variance in the principal components that t-SNE saw."""
    settings: Settings

    def numbers(self) -> dict[str, Any]:
        """The quality numbers and settings, for a table or provenance."""
        return {
            "points": len(self.points),
            "clusters": self.cluster_count,
            "silhouette": self.silhouette,
            "silhouette_in_plane": self.silhouette_in_plane,
            "trustworthiness": self.trustworthiness,
            "kl_divergence": self.kl_divergence,
            "variance_kept": self.variance_kept,
            **{f"tsne_{name}": value for name, value in asdict(self.settings).items()},
        }


def embed(features: ArrayLike, settings: Settings | None = None) -> Embedding:
    """Embed features (points, width) in the plane.

    Features are centred and divided by one common scale: distances keep their proportions, so that
    a feature that hardly varies stays small.

    Raises:
        ValueError: fewer than 10 points, or features that are not finite or do not vary.
    """
    settings = settings or Settings()
    reduced, variance_kept = _reduced(features, settings)
    tsne = TSNE(
        perplexity=min(settings.perplexity, (len(reduced) - 1) / 3),
        max_iter=settings.iterations,
        init="pca",
        random_state=settings.seed,
    )
    points = tsne.fit_transform(reduced)
    subset = _subset(reduced, settings)
    clusters = _clusters(reduced, subset, settings)
    return Embedding(
        points=np.asarray(points, np.float64),
        clusters=clusters,
        cluster_count=int(clusters.max()) + 1,
        silhouette=_silhouette(reduced[subset], clusters[subset]),
        silhouette_in_plane=_silhouette(points[subset], clusters[subset]),
        trustworthiness=float(
            trustworthiness(
                reduced[subset],
                points[subset],
                n_neighbors=min(settings.neighbours, (len(subset) - 1) // 2),
            )
        ),
        kl_divergence=float(tsne.kl_divergence_),
        variance_kept=variance_kept,
        settings=settings,
    )


def separation(features: ArrayLike, settings: Settings | None = None) -> float:
    """`Embedding.silhouette` without the plot: how well features separate into clusters.

    Raises:
        ValueError: as `embed`.
    """
    settings = settings or Settings()
    # A thousand points are soon done. Threads that wait for each other made this eight times slower
    # beside two running trainings.
    with threadpool_limits(1):
        reduced, _ = _reduced(features, settings)
        subset = _subset(reduced, settings)
        return _silhouette(reduced[subset], _clusters(reduced, subset, settings)[subset])


def _reduced(features: ArrayLike, settings: Settings) -> tuple[NDArray[np.float64], float]:
    """Principal components of features, and the share of the variance in them."""
    table = np.asarray(features, np.float64)
    if table.ndim != 2 or len(table) < 10:
        raise ValueError(f"t-SNE needs at least 10 points, got an array of shape {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError("features are not finite: the critic has diverged")
    centred = table - table.mean(axis=0)
    spread = float(centred.std())
    # scikit-learn divides by the spread of its first component and crashes on what comes of it.
    if table.shape[1] < 2 or spread <= 1e-12 * (float(np.abs(table).max()) + 1e-300):
        raise ValueError("features do not vary: the layer gives the same output for every point")
    pca = PCA(min(settings.components, *table.shape), svd_solver="full")
    reduced = pca.fit_transform(centred / spread)
    return reduced, float(pca.explained_variance_ratio_.sum())


def _subset(table: NDArray[np.float64], settings: Settings) -> NDArray[np.int64]:
    """The points on which quality is measured."""
    rng = np.random.default_rng(settings.seed)
    size = min(settings.quality_points, len(table))
    return np.sort(rng.choice(len(table), size, replace=False))


def _clusters(
    table: NDArray[np.float64], subset: NDArray[np.int64], settings: Settings
) -> NDArray[np.int64]:
    """k-means with the number of clusters that gives the best silhouette."""
    best: tuple[float, NDArray[np.int64]] = (-np.inf, np.zeros(len(table), np.int64))
    for count in settings.clusters:
        if count < len(subset):
            means = KMeans(count, n_init=3, random_state=settings.seed).fit(table)
            labels = np.asarray(means.labels_, np.int64)
            score = _silhouette(table[subset], labels[subset])
            if score > best[0]:
                best = (score, labels)
    return best[1]


def _silhouette(table: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    found = len(np.unique(labels))
    return float(silhouette_score(table, labels)) if 1 < found < len(table) else float("nan")
