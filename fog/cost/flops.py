"""Floating-point operations of one update, counted from the shapes of the networks.

A matrix product of (m, k) and (k, n) counts 2mkn, as torch's FlopCounterMode counts it; the two
agree exactly on the uncompiled update. Elementwise work (LayerNorm, activations, losses, AdamW,
Polyak) is not in these numbers, and neither are the heads of the critics and of V: they have one
output, and `fog.fast.backward` multiplies elementwise and adds up. All of it is in the measured
time of an update, from which `fog.cost.calibration` takes seconds for FLOPs of the same kind of
network.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from fog.records.sizes import NetworkSpec, Shapes

Network = Literal["actor", "critics", "twins", "value", "explorer"]
First = Literal["whole", "none", "action"]


@dataclass(frozen=True)
class Term:
    """One pass through one network: a product for each dense layer except critics' heads."""

    name: str
    network: Network
    reason: str
    first: First = "whole"
    """How much of the first layer's product is made: with the action's columns alone, or none."""
    measuring: bool = False
    """Whether `transition_losses`, which the whole-buffer probe calls, makes the pass too."""
    beside: Network | None = None
    """Another network without which the pass is not made."""


TERMS = (
    Term("next action", "actor", "the policy at s' enters the target", measuring=True),
    Term("targets", "critics", "every critic has a target network", measuring=True),
    Term("next value", "value", "V(s') is the offline critics' target", measuring=True),
    Term("critics", "critics", "values of the batch", measuring=True),
    Term("critics' weight gradients", "critics", "one product for each weight"),
    Term("critics' input gradients", "critics", "none for the batch", first="none"),
    Term("V", "value", "values of the batch", measuring=True),
    Term("V's weight gradients", "value", "one product for each weight"),
    Term("V's input gradients", "value", "none for the batch", first="none"),
    Term("policy", "actor", "the action whose value is maximised"),
    Term("policy's value", "twins", "of the online critics; their weights get no gradient"),
    Term("action gradient", "twins", "back to the action only", first="action"),
    Term("policy's weight gradients", "actor", "one product for each weight"),
    Term("policy's input gradients", "actor", "none for the batch", first="none"),
    Term("optimistic actor", "explorer", "BRO's second actor"),
    Term("its weight gradients", "explorer", "one product for each weight"),
    Term("its input gradients", "explorer", "none for the batch", first="none"),
    Term("its value", "twins", "at its action", beside="explorer"),
    Term("its action gradient", "twins", "to the action only", first="action", beside="explorer"),
    Term("the new policy", "actor", "whose mean it shifts", beside="explorer"),
)
"""What an update multiplies. A network that an algorithm does not have has no weights, so OBAC's
terms are zero for SAC, and those of the optimistic actor for both."""


def update_flops(
    spec: NetworkSpec, depth: int, batch_size: int, one_twin: bool = False
) -> dict[str, int]:
    """FLOPs of one update by term, for critics of `depth` blocks.

    With `one_twin` the action gradient goes through each row's smaller twin only, as
    `fog.fast.one_twin_pays` says of a run on the CPU.
    """
    counted = {term.name: batch_size * _per_row(term, spec, depth) for term in TERMS}
    if one_twin:
        counted["action gradient"] //= 2
    return counted


def total_flops(spec: NetworkSpec, depth: int, batch_size: int, one_twin: bool = False) -> int:
    """FLOPs of one update; see `update_flops`."""
    return sum(update_flops(spec, depth, batch_size, one_twin).values())


def loss_flops(spec: NetworkSpec, depth: int) -> int:
    """FLOPs of the training losses of one transition, without gradients."""
    return sum(_per_row(term, spec, depth) for term in TERMS if term.measuring)


def policy_flops(spec: NetworkSpec) -> int:
    """FLOPs of the policy at one state."""
    return sum(2 * prod(shape) for shape in weights(spec.actor()))


def value_flops(spec: NetworkSpec, depth: int) -> int:
    """FLOPs of the policy at one state and of what the online critics think of it."""
    names = ("policy", "policy's value")
    return sum(_per_row(term, spec, depth) for term in TERMS if term.name in names)


def products(spec: NetworkSpec, depth: int) -> int:
    """Matrix products of one update, however large."""
    return sum(len(_weights(term, spec, depth)) for term in TERMS)


def _per_row(term: Term, spec: NetworkSpec, depth: int) -> int:
    return sum(2 * prod(shape) for shape in _weights(term, spec, depth))


def _weights(term: Term, spec: NetworkSpec, depth: int) -> list[tuple[int, ...]]:
    """The weights that the pass multiplies with, as far as it does."""
    found = weights(_shapes(term.network, spec, depth))
    if not found or (term.beside and not _shapes(term.beside, spec, depth)):
        return []
    first, *rest = found
    if rest[-1][-1] == 1:
        # The product of a head with one output has a single column: no matrix product makes it.
        rest.pop()
    if term.first == "none":
        return rest
    if term.first == "action":
        ensemble, _, width = first
        first = (ensemble, spec.act_dim, width)
    return [first, *rest]


def weights(shapes: Shapes) -> list[tuple[int, ...]]:
    """The weight matrices of a network, from its input to its head."""
    return [shape for name, shape in shapes.items() if name.endswith(".weight")]


def _shapes(network: Network, spec: NetworkSpec, depth: int) -> Shapes:
    match network:
        case "actor":
            return spec.actor()
        case "critics":
            return spec.critic(depth)
        case "twins":
            return spec.critic(depth, ensemble=min(2, spec.ensemble))
        case "value":
            return spec.value(depth)
        case "explorer":
            return spec.explorer()
