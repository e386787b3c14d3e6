"""t-SNE plots side by side, each with the numbers that say how far to trust it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from diagnostics.metrics.embedding import Embedding
from diagnostics.paper import names
from diagnostics.plots.layout import crown, panels, small_print, step_label
from diagnostics.plots.style import styled

Plot = tuple[Figure, pd.DataFrame]


def tsne_panels(
    embeddings: Mapping[str, Embedding],
    inserted: Mapping[str, NDArray[np.int64]],
    *,
    title: str,
    remarks: Sequence[str] = (),
) -> Plot:
    """One t-SNE plot per label; colour is the step at which a transition was inserted.

    Args:
        embeddings: What `diagnostics.metrics.embedding.embed` returned.
        inserted: For each label the insertion step of every point.
        title: Headline.
        remarks: Second line of each panel's title, such as run and step.
    """
    low = min(int(steps.min()) for steps in inserted.values())
    high = max(int(steps.max()) for steps in inserted.values())
    notes = list(remarks) or [""] * len(embeddings)
    rows = []
    with styled():
        figure, axes = panels(len(embeddings), columns=3, width=3.6, height=5.0)
        for panel, note, (label, found) in zip(axes, notes, embeddings.items(), strict=True):
            points = panel.scatter(
                found.points[:, 0],
                found.points[:, 1],
                c=inserted[label],
                cmap="viridis",
                norm=Normalize(low, max(high, low + 1)),
                s=5,
                lw=0,
                rasterized=True,
            )
            panel.set(xticks=[], yticks=[], box_aspect=1)
            panel.set_aspect("equal", adjustable="datalim")
            panel.grid(visible=False)
            panel.spines[["left", "bottom"]].set_visible(False)
            panel.set_title(f"{names.label(label)}\n{note}".strip(), fontsize=10)
            panel.set_xlabel(
                f"silhouette {found.silhouette:.2f} ({found.cluster_count} clusters), "
                f"in the plane {found.silhouette_in_plane:.2f}\n"
                f"trustworthiness {found.trustworthiness:.3f}",
                fontsize=8.5,
            )
            rows.append(
                pd.DataFrame(
                    {
                        "label": label,
                        "x": found.points[:, 0],
                        "y": found.points[:, 1],
                        "cluster": found.clusters,
                        "inserted": inserted[label],
                        "silhouette": found.silhouette,
                        "trustworthiness": found.trustworthiness,
                    }
                )
            )
        bar = figure.colorbar(points, ax=axes, shrink=0.7, pad=0.02, aspect=25)
        bar.set_label("inserted at env step")
        bar.ax.yaxis.set_major_formatter(step_label)
        crown(figure, title)
        first = next(iter(embeddings.values()))
        small_print(
            figure,
            "One run each; t-SNE has no axes or units. Silhouette of k-means clusters in feature "
            "space: 1 well separated, 0 none. "
            f"Perplexity {first.settings.perplexity:g}, {first.settings.iterations} iterations, "
            f"seed {first.settings.seed}, first {first.settings.components} principal components.",
        )
    return figure, pd.concat(rows, ignore_index=True)
