"""Theorems 1 and 2: expected sample counts, exact (`exact`) and simulated (`simulation`)."""

from diagnostics.theory.exact import (
    EULER_GAMMA,
    decay_weights,
    expected_counts,
    first_count_floor_asymptote,
    first_count_limit,
    first_count_with_floor,
    first_counts,
    theorem_1_bounds,
    theorem_2_bound,
    theorem_2_sharp_limit,
    total_weights,
)

__all__ = [
    "EULER_GAMMA",
    "decay_weights",
    "expected_counts",
    "first_count_floor_asymptote",
    "first_count_limit",
    "first_count_with_floor",
    "first_counts",
    "theorem_1_bounds",
    "theorem_2_bound",
    "theorem_2_sharp_limit",
    "total_weights",
]
