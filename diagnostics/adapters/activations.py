"""What enters and leaves an activation, be it a module, a function or a method.

`nn.ReLU()`, `F.relu(x)`, `x.relu_()` and `torch.clamp(x, min=0)` all pass through torch's dispatch
of functions, so that is where this module looks, during a forward pass. The submodules that a
network declares do not tell: those of CleanRL declare linear layers only.

A neuron is hidden if it comes out of one layer of a network and goes into another. So tensors are
followed from call to call: through whose parameters each came last, and which activations since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from fog.errors import UserError
from fog.events import Hidden

# fmt: off
_ACTIVATIONS = frozenset({
    "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
    "log_sigmoid", "mish", "prelu", "relu", "relu6", "selu", "sigmoid", "silu", "softplus",
    "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
})
# fmt: on
_CLAMPS = frozenset({"clamp", "clip", "clamp_min"})
_MAXIMA = frozenset({"max", "maximum"})


def hidden_layers(networks: Sequence[nn.Module], loss: Callable[[], Tensor]) -> dict[str, Hidden]:
    """Outputs of the hidden activations, and the gradients of the loss at their inputs.

    Args:
        networks: of equal shape: the twins, say.
        loss: evaluates each network once, and may evaluate others.

    Returns:
        By the activation module's name, or `<layer>.<function>`; `#2` marks a second use.

    Raises:
        UserError: no activation was seen, or the networks differ.
    """
    watch = _Watch(networks)
    with torch.enable_grad():
        with watch.hooks(networks), watch:
            total = loss().sum()
        found = watch.hidden(networks)
        zeros = [tap.zero for taps in found for tap in taps.values()]
        gradients = iter(torch.autograd.grad(total, zeros, materialize_grads=True))
    each = [{name: next(gradients) for name in taps} for taps in found]
    return {
        name: Hidden(
            torch.stack([taps[name].output for taps in found]),
            torch.stack([gradient[name] for gradient in each]),
        )
        for name in found[0]
    }


@dataclass(frozen=True)
class _Tap:
    """An activation's output, and the zero added to its input for the gradient there."""

    output: Tensor
    zero: Tensor


@dataclass(frozen=True)
class _Origin:
    """Where a tensor comes from.

    Attributes:
        network: index of the network whose parameters it came through last; None for others.
        layer: the submodule that holds these parameters.
        activations: those it came through since.
        weight: whether it is made of parameters alone.
    """

    network: int | None
    layer: str
    activations: frozenset[str] = frozenset()
    weight: bool = False


class _Watch(TorchFunctionMode):
    """Follows tensors through the forward pass of some networks, and taps activations."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self._taps: list[dict[str, _Tap]] = [{} for _ in networks]
        self._entered: list[set[str]] = [set() for _ in networks]
        self._module = ""
        self._parameters = {
            id(tensor): _Origin(index, name.rpartition(".")[0], weight=True)
            for index, network in enumerate(networks)
            for name, tensor in network.named_parameters()
        }
        # With the tensors, because the id of one that is freed may be given to the next.
        self._origins: dict[int, tuple[Tensor, _Origin]] = {}

    def hooks(self, networks: Sequence[nn.Module]) -> ExitStack:
        """Hooks that tell which innermost module is being evaluated, until the stack is closed."""
        stack = ExitStack()
        for network in networks:
            for name, module in network.named_modules():
                scripted = isinstance(module, torch.jit.ScriptModule)
                if next(module.children(), None) is None and not scripted:
                    stack.callback(module.register_forward_pre_hook(self._enter(name)).remove)
                    stack.callback(module.register_forward_hook(self._leave).remove)
        return stack

    def hidden(self, networks: Sequence[nn.Module]) -> list[dict[str, _Tap]]:
        """The activations of each network whose outputs entered another layer of it."""
        found = [
            {name: tap for name, tap in taps.items() if name in entered}
            for taps, entered in zip(self._taps, self._entered, strict=True)
        ]
        for network, taps in zip(networks, found, strict=True):
            if not taps:
                raise UserError(
                    f"no activation was seen between two layers of {type(network).__name__}, so "
                    "its hidden neurons cannot be told: use torch's (nn.ReLU, F.relu and similar), "
                    "without torch.jit, or leave out the probe dormancy"
                )
            if taps.keys() != found[0].keys():
                raise UserError(
                    f"the critics differ in their activations ({', '.join(found[0])}; "
                    f"{', '.join(taps)}): give critics of equal shape that share no layer"
                )
        return found

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Evaluate a function that the networks call; what it calls itself is not seen."""
        options = kwargs or {}
        origin = self._origin(list(_tensors((*args, *options.values()))))
        tapped = origin is not None and not origin.weight and origin.network is not None
        if origin is not None and tapped and _is_activation(func, args, options):
            result, name = self._tap(func, args, options, origin)
            origin = replace(origin, activations=frozenset({name}))
        else:
            result = func(*args, **options)
        for tensor in _tensors((result,)):
            self._origins.pop(id(tensor), None)
            if origin is not None:
                self._origins[id(tensor)] = (tensor, origin)
        return result

    def _tap(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        origin: _Origin,
    ) -> tuple[Tensor, str]:
        assert origin.network is not None
        taps, function = self._taps[origin.network], _name(func)
        name = self._module or ".".join(filter(None, (origin.layer, function)))
        uses = sum(known.partition("#")[0] == name for known in taps)
        name = f"{name}#{uses + 1}" if uses else name
        options = dict(options)
        given = options.pop("input") if "input" in options else args[0]
        rest = args[1:] if args else ()
        zero = torch.zeros_like(given, requires_grad=True)
        result = func(given + zero, *rest, **options)
        flags = [value is True for value in (*rest, *options.values())]
        in_place = func.__name__.endswith("_") or any(flags)
        if in_place:
            # The sum was overwritten. The network may go on with what it gave.
            result = given.copy_(result)
        # A copy, because the network may go on in place.
        taps[name] = _Tap(result.detach().clone(), zero)
        return result, name

    def _origin(self, tensors: Sequence[Tensor]) -> _Origin | None:
        """Where a function of these tensors comes from; None if from none of the networks."""
        known = [(tensor, self._known(tensor)) for tensor in tensors]
        weights = [(tensor, origin) for tensor, origin in known if origin and origin.weight]
        if weights and len(weights) == len(known):
            return weights[0][1]
        flows = [origin for _, origin in known if origin and not origin.weight]
        activations = frozenset[str]().union(*(origin.activations for origin in flows))
        if not weights:
            return replace(flows[0], activations=activations) if flows else None
        matrix, layer = max(weights, key=lambda weight: weight[0].ndim)
        if layer.network is None:
            return None
        same = [origin for origin in flows if origin.network == layer.network]
        if matrix.ndim > 1:
            # A layer: it mixes its inputs. A vector scales or shifts them, and they stay neurons.
            for origin in same:
                self._entered[layer.network] |= origin.activations
            activations = frozenset()
        return replace(layer, activations=activations, weight=False)

    def _known(self, tensor: Tensor) -> _Origin | None:
        if id(tensor) in self._origins:
            return self._origins[id(tensor)][1]
        foreign = _Origin(None, "", weight=True) if isinstance(tensor, nn.Parameter) else None
        return self._parameters.get(id(tensor), foreign)

    def _enter(self, name: str) -> Callable[..., None]:
        def enter(_module: nn.Module, _inputs: Any) -> None:
            self._module = name

        return enter

    def _leave(self, _module: nn.Module, _inputs: Any, _output: Any) -> None:
        self._module = ""


def _tensors(values: Sequence[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from _tensors(value)


def _name(func: Callable[..., Any]) -> str:
    return func.__name__.strip("_")


def _is_activation(
    func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> bool:
    """Whether it is an activation, also one that is written as a maximum with zero."""
    name = _name(func)
    if name in _CLAMPS:
        lowest = options["min"] if "min" in options else (*args, None, None)[1]
        return isinstance(lowest, int | float) and lowest == 0
    if name in _MAXIMA:
        other = options["other"] if "other" in options else (*args, None, None)[1]
        return isinstance(other, Tensor) and not bool(other.any())
    return name in _ACTIVATIONS
