"""The paper's claims as contrasts with a sign, to be tested on recorded runs.

A claim is one or more contrasts, each a number that the paper says is positive: of one variant, or
of one variant more than of another. Those that count were written down before any run of
`results/miniature` had been looked at. `diagnostics.paper.verdicts` puts them to runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from diagnostics.metrics import per_run as measures
from diagnostics.paper.names import label as paper_name
from diagnostics.runs.load import Runs

Measure = Callable[[Runs], pd.Series]


@dataclass(frozen=True)
class Contrast:
    """A number that is positive if the paper is right.

    Attributes:
        what: in words, the number that is compared.
        measure: one number per run.
        larger: the variant whose number is larger, or larger than zero if there is no other;
            `variant@K` is the variant primed with K updates.
        smaller: the other variant.
        ratio: the measure is a logarithm, so the contrast is shown as a ratio.
        counts: part of the claim's verdict; others are shown to help read it.
    """

    what: str
    measure: Measure
    larger: str
    smaller: str | None = None
    ratio: bool = True
    counts: bool = True

    def sides(self) -> str:
        """The variants by their names in the paper."""
        other = "" if self.smaller is None else f" against {_shown(self.smaller)}"
        return _shown(self.larger) + other


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and what would show it."""

    name: str
    statement: str
    contrasts: tuple[Contrast, ...]


def _shown(name: str) -> str:
    variant, _, dose = name.partition("@")
    return paper_name(variant) + (f" primed {int(dose):,}" if dose else "")


def each(
    what: str, measure: Measure, pairs: str, *, ratio: bool = True, counts: bool = True
) -> tuple[Contrast, ...]:
    """Contrasts of one measure, from a text such as `a > b, c`."""
    found = []
    for pair in pairs.split(","):
        larger, _, smaller = (part.strip() for part in pair.partition(">"))
        found.append(Contrast(what, measure, larger, smaller or None, ratio, counts))
    return tuple(found)


def _dormancy(score: str, counts: bool) -> Iterator[Contrast]:
    """Contrasts of dormancy by one score, whose name stands in each."""
    for what, measure, pairs in (
        ("points lost at an expansion", measures.fall_at_expansions, "fog, expanded-sac"),
        ("share of neurons, points", measures.dormant, "fog-fixed2 > fog, fog-fixed4 > fog"),
    ):
        by_score = partial(measure, score=score)
        yield from each(f"dormant ({score}), {what}", by_score, pairs, ratio=False, counts=counts)


_scaled = partial(partial, quantity="scaled")
_DRAWN = "draws, oldest tenth / newest tenth"
_LATE_LOSS = "loss of a window, all windows, 2nd half of training"
_NEWEST = "loss, newest window / older half, 2nd half of training"
_GROWTH = "loss on the newest window, 2nd half / 1st half of training"
_LATE = "loss on the newest window, 2nd half of training"
_DIAGONAL = "loss on the newest window"
_FREE = ", scale-free"
_SAC_OVER = "sac > sac-reset, sac > per-sac, sac > balanced-sac, sac > expanded-sac"

CLAIMS = (
    Claim(
        "older transitions are drawn more",
        "Older transitions are sampled considerably more often, however often the agent is reset; "
        "ER decay suppresses it.",
        (
            *each(_DRAWN, measures.drawn, "sac, sac-reset, fog-uniform"),
            *each(_DRAWN, measures.drawn, "sac-reset > balanced-sac, fog-uniform > fog"),
        ),
    ),
    Claim(
        "plain SAC fails to fit its data",
        "The critic loss of SAC is significantly higher than that of the variants with resets.",
        (
            *each(_LATE_LOSS, measures.late_loss, _SAC_OVER),
            *each(_LATE_LOSS + _FREE, _scaled(measures.late_loss), _SAC_OVER, counts=False),
        ),
    ),
    Claim(
        "reset alone leaves the late diagonal bright",
        "Even SAC with reset has a spike in loss on the diagonal as training progresses; Expanded "
        "SAC has a darker one.",
        (
            *each(_NEWEST, measures.late_index, "sac-reset"),
            *each(_GROWTH, measures.diagonal_growth, "sac-reset"),
            *each(_LATE, measures.late_diagonal, "sac-reset > expanded-sac"),
            *each(_NEWEST + _FREE, _scaled(measures.late_index), "sac-reset", counts=False),
            *each(_GROWTH + _FREE, _scaled(measures.diagonal_growth), "sac-reset", counts=False),
            *each(_GROWTH, measures.diagonal_growth, "sac-reset > expanded-sac", counts=False),
            *each(
                _LATE + _FREE,
                _scaled(measures.late_diagonal),
                "sac-reset > expanded-sac",
                counts=False,
            ),
        ),
    ),
    Claim(
        "decay beats PER on the diagonal",
        "The values on the diagonal of ER decay are generally smaller than those of PER.",
        (
            *each(_DIAGONAL, measures.diagonal, "per-sac > balanced-sac"),
            *each(
                _DIAGONAL + _FREE,
                _scaled(measures.diagonal),
                "per-sac > balanced-sac",
                counts=False,
            ),
        ),
    ),
    Claim(
        "expansion suppresses the loss explosion after resets",
        "After a reset the critic buffer loss explodes; network expansion suppresses it.",
        (
            *each(
                "peak loss of the buffer critic after resets",
                measures.explosion,
                "fog-fixed2 > fog, fog-fixed4 > fog",
            ),
            # Added when the first seed had shown that peaks are those of newborn weights, of a
            # reset and of an expansion alike; an afterthought must not decide.
            *each(
                "loss of the buffer critic after the first reset, mean",
                measures.buffer_loss,
                "fog-fixed2 > fog, fog-fixed4 > fog",
                counts=False,
            ),
        ),
    ),
    Claim(
        "dormancy drops at expansions",
        "Steep drops in the dormant ratio follow expansions immediately; FoG has fewer dormant "
        "neurons than networks that do not grow (here of 2 and of 4 blocks). Judged by gradients, "
        "as the paper defines dormancy; by activations, as the work it cites does, for comparison.",
        (
            *_dormancy("gradient", counts=True),
            # By gradient only: an expansion cannot change what older layers put out.
            *each(
                "dormant (gradient), points lost by layers older than the expansion",
                partial(measures.fall_of_old_layers, score="gradient"),
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
                measures.silhouette,
                "fog > fog-fixed2, fog > fog-fixed4",
                ratio=False,
            ),
            *each(
                "silhouette of the features at the end",
                partial(measures.silhouette, at=1.0),
                "fog > fog-fixed2, fog > fog-fixed4",
                ratio=False,
                counts=False,
            ),
        ),
    ),
    Claim(
        "returns of the motivating example",
        "Expanded SAC returns more than SAC with reset, and ER decay more than PER. (That resets "
        "help SAC and expansion helps ER decay is implied, not said.)",
        each(
            "return, last fifth of training",
            measures.late_return,
            "sac-reset > sac, balanced-sac > per-sac, expanded-sac > balanced-sac, "
            "expanded-sac > sac-reset",
            ratio=False,
        ),
    ),
    Claim(
        "returns of FoG's ablations",
        "FoG is ahead of uniform replay, PER and CUER, and of both fixed sizes.",
        each(
            "return, last fifth of training",
            measures.late_return,
            "fog > fog-uniform, fog > fog-per, fog > fog-cuer, fog > fog-fixed2, fog > fog-fixed4",
            ratio=False,
        ),
    ),
)


def variants_of(claims: Sequence[Claim]) -> frozenset[str]:
    """Everything that some of the claims is about."""
    return frozenset(
        name
        for claim in claims
        for contrast in claim.contrasts
        for name in (contrast.larger, contrast.smaller)
        if name is not None
    )
