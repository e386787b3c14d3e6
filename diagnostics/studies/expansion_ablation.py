"""FoG with critics that grow, and with fixed ones of 2 and of 4 blocks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from diagnostics.metrics.curves import mean_curves
from diagnostics.plots.curves import Plot, curves
from diagnostics.studies import per_run
from diagnostics.studies.claims import Claim, Contrast, each
from diagnostics.studies.page import MissingDataError, Page
from diagnostics.studies.shared.dormancy import dormancy, dormancy_at_expansions
from diagnostics.studies.shared.features import tsne
from diagnostics.studies.shared.returns import returns, scores
from diagnostics.studies.study import Study

__all__ = [
    "STUDY",
    "buffer_loss",
    "dormancy",
    "dormancy_at_expansions",
    "returns",
    "scores",
    "tsne",
]

_FIXED_OVER = "fog-fixed2 > fog, fog-fixed4 > fog"
_OVER_FIXED = "fog > fog-fixed2, fog > fog-fixed4"


def _dormancy(score: str, counts: bool) -> Iterator[Contrast]:
    """Contrasts of dormancy by one score, which each of them names."""
    for what, measure, pairs in (
        ("points lost at an expansion", per_run.fall_at_expansions, "fog, expanded-sac"),
        ("share of neurons, points", per_run.dormant, _FIXED_OVER),
    ):
        by_score = partial(measure, score=score)
        yield from each(f"dormant ({score}), {what}", by_score, pairs, ratio=False, counts=counts)


STUDY = Study(
    name="expansion_ablation",
    order=5,
    variants=("fog", "fog-fixed2", "fog-fixed4"),
    plans=("expansion_ablation",),
    claims=(
        Claim(
            "expansion suppresses the loss explosion after resets",
            "After a reset the critic buffer loss explodes; network expansion suppresses it.",
            (
                *each(
                    "peak loss of the buffer critic after resets", per_run.explosion, _FIXED_OVER
                ),
                # Both added after runs had been looked at, because most peaks come from untrained
                # weights, after a reset and after an expansion alike. Afterthoughts must not
                # decide, so they do not count.
                *each(
                    "peak loss of the buffer critic after resets, without the first row",
                    partial(per_run.explosion, newborn=False),
                    _FIXED_OVER,
                    counts=False,
                ),
                *each(
                    "loss of the buffer critic after the first reset, mean",
                    per_run.buffer_loss,
                    _FIXED_OVER,
                    counts=False,
                ),
            ),
        ),
        Claim(
            "dormancy drops at expansions",
            "Steep drops in the dormant ratio follow expansions immediately; FoG has fewer dormant "
            "neurons than networks that do not grow (here of 2 and of 4 blocks). Judged by "
            "gradients, as the paper defines dormancy; by activations, as the work it cites does, "
            "for comparison.",
            (
                *_dormancy("gradient", counts=True),
                # An afterthought too: at the expansion itself nothing has been learned yet.
                *each(
                    "dormant (gradient), points lost at the second measurement after an expansion",
                    partial(per_run.fall_after_expansions, score="gradient"),
                    "fog, expanded-sac",
                    ratio=False,
                    counts=False,
                ),
                # By gradient only: an expansion cannot change what older layers put out.
                *each(
                    "dormant (gradient), points lost by layers older than the expansion",
                    partial(per_run.fall_of_old_layers, score="gradient"),
                    "fog, expanded-sac",
                    ratio=False,
                    counts=False,
                ),
                *_dormancy("activation", counts=False),
            ),
        ),
        Claim(
            "clearer clusters",
            "Network expansion makes clearer clusters in feature space.",
            (
                *each(
                    "silhouette of the features after 20 % of training",
                    per_run.silhouette,
                    _OVER_FIXED,
                    ratio=False,
                ),
                *each(
                    "silhouette of the features at the end",
                    partial(per_run.silhouette, at=1.0),
                    _OVER_FIXED,
                    ratio=False,
                    counts=False,
                ),
            ),
        ),
    ),
)


def buffer_loss(page: Page, *, share: float = 0.3, column: str = "offline_critic_loss") -> Plot:
    """Training loss of the offline ("buffer") critic over the first `share` of training.

    The paper shows the first 300k of 1M steps. `column` is one of train.csv; the default is the
    critic that learns from the buffer alone.
    """
    page.require()
    train = page.runs.train
    if column not in train or not train[column].notna().any():
        raise MissingDataError(f"no run in {page.source} has a column {column!r} in train.csv")
    train = train.merge(page.runs.runs[["run", "steps"]], on="run")
    early = train[train["env_step"] <= share * train["steps"]]
    table = mean_curves(early, column)
    if table.empty:
        raise MissingDataError(f"no run in {page.source} has trained in its first {share:.0%}")
    events = page.runs.events.merge(page.runs.runs[["run", "steps"]], on="run")
    events = events[events["env_step"] <= share * events["steps"]]
    return curves(
        table,
        events,
        ylabel="offline critic loss",
        title=f"Critic buffer loss, first {share:.0%} of training",
        columns=2,
        log=True,
        expansions=True,
        remark=" Loss on the minibatches it is trained on.",
    )
