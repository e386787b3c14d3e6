"""Tables that probes record: names, columns and types, the only contract between the two halves.

Recording and analysis both import this module and nothing from each other. A table is stored in a
run directory as `probes/<table>/<env step>-<part>.parquet`; every file carries `VERSION` in its
metadata under the key `METADATA_KEY`. Tables of older versions are read too, without the columns
that have changed their meaning (`CHANGED`). Besides the columns listed here every table starts with
`env_step` (int64), the environment step at which the row was measured.

A column of type `list<...>` holds one vector per row. "Transition i" is the i-th added to the
replay, counted from 0, so it was inserted by environment step i + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

VERSION = 3
"""Goes up when a column changes its meaning or is added."""

METADATA_KEY = "fog.schema"

CHANGED: dict[int, dict[str, dict[str, str]]] = {
    2: {},
    1: {
        "dormancy": {
            "gradient": "it was taken after the activation, where a dead ReLU neuron looks active"
        }
    },
}
"""By older version and table, columns that meant something else, and why they are not read."""

READABLE = (VERSION, *CHANGED)
"""Versions that can be read. All other columns of the older ones mean the same as today's; those
that were added since are null."""


@dataclass(frozen=True)
class Column:
    """One column: its name, its type (`str`, a numpy type or `list<numpy type>`), its meaning."""

    name: str
    dtype: str
    meaning: str


@dataclass(frozen=True)
class Table:
    """One table: what a row is, and its columns after `env_step`."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, `env_step` first."""
        return ("env_step", *(column.name for column in self.columns))


_Column = tuple[str, str, str]

_CRITIC: _Column = ("critic", "str", "which network: online, offline or value")
_NETWORK: _Column = ("network", "str", "actor, online, offline or value")
_MEMBER: _Column = ("member", "int32", "member of the ensemble: 0 and 1 are the twins")
_AGE: _Column = ("age", "float64", "their mean age in environment steps; the newest has age 0")
_WINDOW: _Column = (
    "window",
    "int32",
    "insertion window: transition i belongs to i // window_steps",
)
_WINDOW_SPAN = (
    _WINDOW,
    ("window_start", "int64", "first transition of the window"),
    ("window_end", "int64", "one past its last transition, whether stored or not"),
)
_SCALED = (
    ("target_variance", "float64", "population variance of the regression target"),
    ("scaled", "float64", "mean / target_variance; NaN if the variance is 0"),
)
_CHURN = (
    ("policy_churn", "float64", "mean over states of |change of the mean action|"),
    ("q_churn", "float64", "mean |change of Q|, Q the mean of the online twins"),
    ("q_churn_scaled", "float64", "q_churn / standard deviation of Q before"),
)

_DECLARED: dict[str, tuple[str, *tuple[_Column, ...]]] = {
    "critic_loss": (
        "one insertion window of the buffer, as one critic fits it",
        _CRITIC,
        *_WINDOW_SPAN,
        ("count", "int64", "transitions of the window that are stored now"),
        _AGE,
        ("mean", "float64", "mean training loss, unweighted"),
        ("std", "float64", "population standard deviation of the loss"),
        ("target_mean", "float64", "mean of the regression target"),
        *_SCALED,
        (
            "squared_error",
            "float64",
            "sum over members of the mean squared TD error; differs from `mean` for a critic "
            "of quantiles",
        ),
    ),
    "critic_loss_raw": (
        "the whole buffer, as one critic fits it (only with critic_loss:raw)",
        _CRITIC,
        ("first", "int64", "transition that the first entry of `loss` belongs to"),
        ("loss", "list<float32>", "training loss of every stored transition, oldest first"),
    ),
    "dormancy": (
        "one hidden layer of one member of one network",
        ("phase", "str", "cadence, or before/after reset/expansion"),
        _NETWORK,
        ("layer", "str", "name of the dense layer, in order of depth"),
        _MEMBER,
        ("activation", "list<float32>", "per neuron: mean over the batch of |output|"),
        (
            "gradient",
            "list<float32>",
            "per neuron: mean over the batch of |d loss / d input of the activation|",
        ),
        ("positive", "float64", "share of outputs above 0, over neurons and the batch (FAU)"),
    ),
    "sample_counts": (
        "one bin of neighbouring transitions, evicted ones included",
        ("start", "int64", "first transition of the bin"),
        ("end", "int64", "one past the last"),
        ("count", "int64", "draws so far of all transitions of the bin"),
        ("expected", "float64", "the sampler's exact expectation of `count`; NaN if unknown"),
        ("variance", "float64", "sum of the exact variances of the transitions' counts"),
    ),
    "sample_counts_full": (
        "one snapshot",
        ("counts", "list<int32>", "draws so far of every transition; entry i is transition i"),
    ),
    "sample_fit": (
        "one snapshot",
        ("sampler", "str", "name of the sampler"),
        ("transitions", "int64", "transitions added so far"),
        ("draws", "int64", "draws so far"),
        ("chi_square", "float64", "mean of (count - expected)^2 / variance; expectation 1"),
        ("z", "float64", "(chi_square - 1) / its standard deviation; NaN if unknown"),
    ),
    "features": (
        "one sampled transition of the buffer",
        ("transition", "int64", "transition"),
        ("age", "int64", "its age in environment steps; the newest has age 0"),
        ("reward", "float32", "its reward"),
        ("q", "float32", "Q(s, a) of the online critic's first twin"),
        ("td_error", "float32", "target minus q"),
        ("features", "list<float32>", "penultimate features of that twin"),
    ),
    "srank": (
        "one member of one critic",
        _CRITIC,
        _MEMBER,
        ("srank", "int32", "rank of the penultimate features, 99 % of sum(sigma) (Kumar)"),
        ("effective_rank", "float64", "exp(entropy of sigma / sum(sigma)) (Roy, Vetterli)"),
        ("pca_rank", "int32", "rank by 99 % of sum(sigma^2); features are not centred"),
        ("feature_rank", "int32", "number of sigma / sqrt(batch) above 0.01 (Lyle)"),
        ("width", "int32", "number of features, the largest rank possible"),
        ("singular_values", "list<float32>", "sigma: all singular values, largest first"),
    ),
    "norms": (
        "one network",
        _NETWORK,
        ("parameters", "int64", "number of parameters"),
        ("parameter_norm", "float64", "Euclidean norm of all parameters"),
        ("gradient_norm", "float64", "Euclidean norm of the gradient of the mean loss"),
        ("feature_norm", "float64", "mean Euclidean norm of the penultimate features"),
    ),
    "layer_norms": (
        "one parameter tensor of one network, twins as one",
        _NETWORK,
        ("layer", "str", "name of the dense layer it belongs to"),
        ("parameter", "str", "which of the layer's: weight, bias, scale or offset"),
        ("size", "int64", "number of its entries"),
        ("norm", "float64", "Euclidean norm"),
        ("gradient_norm", "float64", "Euclidean norm of the gradient of the mean loss"),
        ("update_norm", "float64", "Euclidean norm of what one update changes; NaN if unknown"),
        ("gradient_ratio", "float64", "gradient_norm / norm; NaN if the norm is 0"),
        ("effective_lr", "float64", "update_norm / norm; NaN if the norm is 0"),
        ("birth_distance", "float64", "Euclidean distance to its values at birth"),
        ("born", "int64", "environment step of its birth: start, reset or expansion"),
    ),
    "churn": (
        "one interval between two measurements on the same probe batch",
        ("batch", "int32", "number of the probe batch: a new one is drawn in each window"),
        ("updates", "int64", "updates made in the interval"),
        ("changes", "int32", "resets and expansions in the interval"),
        *_CHURN,
    ),
    "update_churn": (
        "one update, made on a copy of the agent",
        ("batch", "int32", "number of the probe batch, as in churn"),
        ("policy_kl", "float64", "mean over states of KL(before || after); NaN without"),
        *_CHURN,
    ),
    "disagreement": (
        "one insertion window of the buffer, as one critic sees a sample of it",
        _CRITIC,
        _WINDOW,
        ("count", "int64", "transitions sampled"),
        _AGE,
        ("disagreement", "float64", "mean |Q1 - Q2| of the twins; NaN with one member"),
        ("action_gradient", "float64", "mean Euclidean norm of dQ/da, over twins too"),
        ("q_std", "float64", "population standard deviation of the twins' mean Q"),
    ),
    "curvature": (
        "one critic (only if named: --probes all,curvature)",
        _CRITIC,
        ("parameters", "int64", "order of the Hessian"),
        ("steps", "int32", "Lanczos steps made"),
        ("eigenvalues", "list<float64>", "largest Ritz values of the Hessian, largest first"),
        ("residuals", "list<float64>", "bounds of their distance to an eigenvalue"),
        ("lowest", "float64", "smallest Ritz value, the most negative curvature seen"),
        ("lowest_residual", "float64", "bound of its distance to an eigenvalue"),
    ),
    "overestimation": (
        "one evaluation",
        ("states", "int64", "states of the evaluation episodes that were compared"),
        ("q", "float64", "mean Q(s, a), the smaller of the online twins"),
        ("mc_return", "float64", "mean discounted return that followed"),
        ("entropy_return", "float64", "mean discounted entropy bonus that followed"),
        ("bias", "float64", "q - mc_return"),
        ("soft_bias", "float64", "q - mc_return - entropy_return: what SAC's Q estimates"),
        ("tail", "float64", "mean weight of the bootstrapped tail of truncated episodes"),
    ),
    "validation": (
        "one critic at one evaluation",
        _CRITIC,
        ("count", "int64", "transitions of the evaluation episodes"),
        ("mean", "float64", "mean training loss on them: they are never trained on"),
        ("std", "float64", "population standard deviation of the loss"),
        *_SCALED,
    ),
    "plasticity": (
        "one critic",
        _CRITIC,
        ("score", "float64", "1 - loss_end / loss_start; 1 is a perfect fit, 0 none"),
        ("area", "float64", "mean over the steps of loss / loss_start; small is fast"),
        ("loss_start", "float64", "standardised squared error on random targets, before"),
        ("loss_end", "float64", "the same after the fitting steps"),
    ),
    "offpolicy": (
        "one insertion window of the buffer, as today's policy sees it",
        *_WINDOW_SPAN,
        ("count", "int64", "transitions of the window that were sampled"),
        _AGE,
        ("log_prob", "float64", "mean log pi(a|s); NaN if deterministic: it has no density"),
        ("log_prob_std", "float64", "its population standard deviation"),
        ("log_prob_median", "float64", "its median"),
        ("distance", "float64", "mean |a - mu(s)|, mu the deterministic action"),
        ("distance_std", "float64", "its population standard deviation"),
        ("saturated", "float64", "share of action components within 1e-6 of -1 or 1"),
    ),
    "interference": (
        "a pair of insertion windows, both orders: gradients of the online critic's mean loss",
        _WINDOW,
        ("other", "int32", "the window it is compared with"),
        ("age", "float64", "mean age of the first's sample; the newest transition has age 0"),
        ("other_age", "float64", "mean age of the other's sample"),
        ("dot", "float64", "inner product of the two mean gradients"),
        ("cosine", "float64", "their cosine; NaN if one of them is 0"),
    ),
    "interference_rank": (
        "one measurement",
        ("windows", "int32", "insertion windows compared"),
        ("window_rank", "float64", "effective rank of the cosines of their mean gradients"),
        ("samples", "int32", "single transitions compared, spread evenly over age"),
        ("sample_rank", "float64", "effective rank of the cosines of their gradients"),
        ("transitions", "list<int64>", "which transitions, oldest first"),
        ("cosines", "list<float32>", "cosines of their gradients, samples x samples, by rows"),
    ),
    "warmstart": (
        "one member of the online critic: today's weights against fresh ones",
        ("fit", "str", "targets, or change: of the output from where it stood"),
        _MEMBER,
        ("rows", "int64", "transitions of the newest window that were fitted"),
        ("held_out", "int64", "transitions of it that were held out"),
        ("gap", "float64", "ln(today / fresh) of the held-out losses at the end"),
        ("gap_fitted", "float64", "the same on the fitted rows"),
        ("steps", "list<int32>", "optimiser steps after which the losses were taken"),
        ("today", "list<float64>", "held-out loss of today's weights"),
        ("fresh", "list<float64>", "held-out loss of fresh weights"),
        ("today_fitted", "list<float64>", "loss of today's weights on the fitted rows"),
        ("fresh_fitted", "list<float64>", "loss of fresh weights on the fitted rows"),
    ),
}
"""By name: what a row is, then name, type and meaning of each column."""

TABLES: dict[str, Table] = {
    name: Table(name, row, tuple(Column(*column) for column in columns))
    for name, (row, *columns) in _DECLARED.items()
}
